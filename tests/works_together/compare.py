# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare.py FOUND COMMAND...: runs a command that prints what it has found, in the form of findings.hpp, and compares that
with the file FOUND, or writes it there if ADASUM_WRITE_FINDINGS is set. Fails also if the command does."""

import difflib
import os
import pathlib
import subprocess
import sys


def main():
    found_file, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    if result.returncode != 0:
        print(result.stdout)
        sys.exit(f"{command} failed")
    text = "\n".join(lines + ["[counts]", f"right: {sum(line.endswith(': right') for line in lines)}", ""])
    if "ADASUM_WRITE_FINDINGS" in os.environ:
        found_file.write_text(text)
    committed = found_file.read_text() if found_file.exists() else ""
    if committed != text:
        print("\n".join(difflib.unified_diff(committed.splitlines(), text.splitlines(), str(found_file), "found", lineterm="")))
        sys.exit("if what was found is right, run scripts/works-together")


if __name__ == "__main__":
    main()
