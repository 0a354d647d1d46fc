# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""processes.py N COMMAND...: runs the command N times at once, as torchrun does, which Debian 12's PyTorch has without being
able to start it. If one fails, the others are ended. Exits as the first that failed."""

import os
import socket
import subprocess
import sys
import time


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = [
        subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
                                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in range(count)]
    try:
        while any(process.poll() is None for process in running) and not any(process.poll() for process in running):
            time.sleep(0.02)
        time.sleep(0.5)  # the others' own messages
    finally:
        for process in running:
            if process.poll() is None and any(other.poll() for other in running):
                process.kill()
    sys.exit(next((process.returncode for process in running if process.wait()), 0))


if __name__ == "__main__":
    main()
