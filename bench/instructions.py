#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/instructions.py [--update] [--emulator COMMAND] PROGRAM COMPILER

Counts, under valgrind or an emulator, the instructions that each case of PROGRAM (adasum_bench_instructions) executes, and
compares them with the limits of bench/instructions.json: a regression check that does not depend on the machine's load, as
times do. Instructions per element; more than TOLERANCE above the limit fails. --update writes what was counted as the new
limits.

COMPILER names who compiled PROGRAM, as in 'GNU 12' or 'GNU 12 aarch64': another one generates other code, so each major
version has limits of its own. valgrind (3.19) knows no AVX-512, so what is counted is the AVX2 kernels, whatever the processor
has. For a program of another processor, COMMAND is qemu in its user mode with its options; scripts/test-processors uses it.
Exits 77, and says why, where there is nothing to compare with.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.05
SKIPPED = 77
LIMITS = pathlib.Path(__file__).with_suffix(".json")


def count(program, case, emulator):
    """The kernels' instruction set, and instructions per element."""
    instructions, printed = (count_emulated(program, case, emulator) if emulator else
                             count_under_valgrind(program, case))
    arithmetic, elements = printed.split()
    if instructions == 0:
        sys.exit(f"{case}: found no function adasum_counted_calls")
    return arithmetic, instructions / int(elements)


def count_emulated(program, case, emulator):
    """qemu logs each instruction with the function it is in; those between entering our function and returning to main."""
    counted = 0
    with subprocess.Popen([*emulator, "-singlestep", "-d", "nochain,exec", program, case], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as run:
        inside = False
        for line in run.stderr:
            if not line.startswith("Trace "):
                continue
            function = line[line.rindex("]") + 1:].strip()
            inside = function == "adasum_counted_calls" or inside and function != "main"
            counted += inside
        printed = run.stdout.read()
    if run.returncode != 0:
        sys.exit(f"{case} failed under {emulator[0]}")
    return counted, printed


def count_under_valgrind(program, case):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=adasum_counted_calls",
             f"--callgrind-out-file={folder}/out", program, case], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{case} failed under valgrind:\n{run.stdout}{run.stderr}")
    return int(re.search(r"Collected\s*:\s*(\d+)", run.stderr)[1]), run.stdout


def compare(counts, limits):
    """Prints a table. Returns the cases that need more instructions than their limit, or have none."""
    worse = []
    for case, counted in counts.items():
        limit = limits.get(case)
        change = "" if limit is None else f"{counted / limit - 1:+8.1%}"
        if limit is None or counted > limit * (1 + TOLERANCE):
            worse.append(case)
        remark = ("no limit" if limit is None else "more" if case in worse
                  else "less: worth a new limit" if counted < limit * (1 - TOLERANCE) else "")
        print(f"{case:32} {counted:10.3f} {limit if limit is not None else '':>10} {change:8} {remark}".rstrip())
    return worse


def main():
    parser = argparse.ArgumentParser(description="Instruction counts, against committed limits.")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--emulator", type=str.split, metavar="COMMAND")
    parser.add_argument("program")
    parser.add_argument("compiler")
    given = parser.parse_args()

    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    known = limits.get(given.compiler)
    if known is None and not given.update:
        print(f"Skipped: {LIMITS.name} has no limits for {given.compiler}, only for {', '.join(limits)}")
        return SKIPPED

    cases = subprocess.run([*(given.emulator or []), given.program], capture_output=True, text=True,
                           check=True).stdout.split()
    expected = "baseline" if given.emulator else "avx2"
    counts = {}
    for case in cases:
        arithmetic, counts[case] = count(given.program, case, given.emulator)
        if arithmetic != expected:
            print(f"Skipped: the limits are for {expected} kernels, and {arithmetic} ran here")
            return SKIPPED

    if given.update:
        limits[given.compiler] = {case: round(counted, 3) for case, counted in counts.items()}
        LIMITS.write_text(json.dumps(limits, indent=1) + "\n")
        print(f"{LIMITS} now has limits for {given.compiler}")
        return 0

    print(f"{given.compiler}, {expected}\n{'instructions per element':32} {'counted':>10} {'limit':>10} {'change':>8}")
    worse = compare(counts, known)
    gone = sorted(set(known) - set(counts))
    if gone:
        print(f"Limits without a case: {', '.join(gone)}")
    if worse or gone:
        print(f"\nFAILED: {', '.join(worse + gone)}\nIf the change is worth it, say why in the commit that takes it over with\n"
              f"    bench/instructions.py --update {given.program} '{given.compiler}'")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
