# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a bucket of gradients costs by adasum.torch.hook, beside the all-reduce that DistributedDataParallel itself does: the
two calls that hooks make, in turns. A line for each size: median times, their quotient, and the least and the largest quotient
of five parts of the run. To be started by torchrun, for instance.

    torchrun --nproc_per_node 2 allreduce_hook.py [--rule RULE] [--seconds S] [--least-kib N] [--most-mib N]"""

import argparse
import math
import statistics
import time

import torch
import torch.distributed

import adasum.torch


def once(call):
    torch.distributed.barrier()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rule", default="adasum")
    arguments.add_argument("--seconds", type=float, default=3, help="for each size")
    arguments.add_argument("--least-kib", type=int, default=4)
    arguments.add_argument("--most-mib", type=int, default=64)
    chosen = arguments.parse_args()
    torch.distributed.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    state = adasum.torch.State(rule=chosen.rule)
    if rank == 0:
        print(f"{size} processes, {chosen.rule}, PyTorch {torch.__version__}\n"
              "KiB      all-reduce µs    hook µs  quotient  (least, largest)")
    quotients = []
    kib = chosen.least_kib
    while kib <= 1024 * chosen.most_mib:
        mine, other = torch.randn(256 * kib), torch.randn(256 * kib)
        other /= 1e30  # so that sums of sums stay finite
        calls = {"plain": lambda: torch.distributed.all_reduce(other, async_op=True).wait(),
                 "hook": lambda: state.reduce(mine).wait()}
        for call in calls.values():
            call()
        number = torch.tensor([max(15, min(2000, int(chosen.seconds / (once(calls["plain"]) + once(calls["hook"])))))])
        torch.distributed.broadcast(number, 0)
        times = {"plain": [], "hook": []}
        for i in range(int(number)):
            for name in sorted(calls, reverse=bool(i % 2)):
                times[name].append(once(calls[name]))
            other.mul_(1 / size)
        parts = [statistics.median(times["hook"][i::5]) / statistics.median(times["plain"][i::5]) for i in range(5)]
        plain, hook = statistics.median(times["plain"]), statistics.median(times["hook"])
        quotients.append(hook / plain)
        if rank == 0:
            print(f"{kib:<8} {1e6 * plain:13.1f} {1e6 * hook:10.1f} {hook / plain:9.2f}  ({min(parts):.2f}, {max(parts):.2f})",
                  flush=True)
        kib *= 4
    if rank == 0:
        print(f"geometric mean {math.exp(statistics.mean(map(math.log, quotients))):.2f}, worst {max(quotients):.2f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
