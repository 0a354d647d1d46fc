#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each constant that was chosen by measuring costs on this machine: scripts/bench-constants.

For each constant, the library is copied with other values of it, and a program of this folder is compiled with each of these.
The programs run several times, each time in another order. The regret of a value in a case is its time, divided by the least
time of any value. Today's value takes part twice: what the two differ by is noise. Constants on which the bits of results depend
are marked: they cannot be chosen on the machine."""

import argparse
import dataclasses
import math
import random
import re
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERIAL, SCHEDULES = "exec/serial/", "schedules/"


@dataclasses.dataclass(frozen=True)
class Constant:
    name: str
    file: str
    pattern: str  # what is replaced: its group
    values: tuple  # the first one is today's, as it stands in the file
    program: str
    changes_bits: bool = False
    shown: str = ""  # in place of that value


AHEAD = "1024; 256 without AVX-512"
PREFETCH = r"from_memory \? \((.*?)\) / sizeof"

CONSTANTS = (
    Constant("how far ahead memory is asked for, bytes",
             SERIAL + "blocks.hpp", PREFETCH,
             ("Bytes == 64 ? 1024 : 256", 0, 128, 256, 512, 1024, 2048), "pair", shown=AHEAD),
    Constant("how far ahead in a tree, bytes",
             SERIAL + "blocks.hpp", PREFETCH,
             ("Bytes == 64 ? 1024 : 256", 0, 256, 1024, 2048), "tree", shown=AHEAD),
    Constant("from which size on memory is asked for ahead (`exceeds_cache`), KiB",
             SERIAL + "blocks.hpp", r"bytes >= std::size_t\{(\d+)\} << 10",
             (512, 128, 256, 1024, 2048, 8192), "pair"),
    Constant("from which size on in a tree (`exceeds_cache`), KiB",
             SERIAL + "blocks.hpp", r"bytes >= std::size_t\{(\d+)\} << 10",
             (512, 128, 256, 1024, 2048, 8192), "tree", True),
    Constant("from which size on results are written past the caches (`goes_to_memory`), MiB",
             SERIAL + "blocks.hpp", r"bytes >= std::size_t\{(\d+)\} << 20",
             (16, 2, 4, 8, 32, 64, 1024), "pair"),
    Constant("gradients measured and then mixed at a time (`own_round_bytes`), KiB",
             SERIAL + "space.hpp", r"own_round_bytes<serial_space> = std::size_t\{(\d+)\} << 10",
             (256, 64, 128, 512, 1024), "pair"),
    Constant("the most segments measured and then mixed at a time (`most_in_round`)",
             "core/space_members.hpp", r"most_in_round = (\d+)",
             (64, 8, 16, 256), "pair"),
    Constant("from which length on kernels begin at a cache line (`long_enough_to_rotate`), bytes",
             SERIAL + "measure.hpp", r"long_enough_to_rotate = (\d+)",
             (8192, 1024, 4096, 32768, 1 << 30), "pair"),
    Constant("vectors that are mixed at a time (`streams`)",
             SERIAL + "mix.hpp", r"streams = (\d+)",
             (8, 4, 16, 32), "tree"),
    Constant("elements whose sums are kept while more vectors are mixed (`block`)",
             SERIAL + "mix.hpp", r"block = (\d+);",
             (2048, 512, 1024, 4096, 8192), "tree"),
    Constant("sums of groups that are kept in a tree (`kept_bytes`), MiB",
             "detail/numerics/combine_in_groups.hpp", r"kept_bytes = std::size_t\{(\d+)\} << 20",
             (8, 1, 2, 32, 128), "tree", True),
    Constant("vectors of a group in a tree (`most_leaves`)",
             "detail/numerics/combine_in_groups.hpp", r"max<std::size_t>\((\d+), vectors / 64\)",
             (8, 4, 16), "tree", True),
    Constant("the least that a thread gets (`least_share`), KiB",
             "exec/threads/team.hpp", r"least_share = std::size_t\{(\d+)\} << 10",
             (96, 24, 48, 192, 384), "threads"),
    Constant("from which size on threads are woken (`worth_waking`), MiB",
             "exec/threads/team.hpp", r"worth_waking = std::size_t\{(\d+)\} << 20",
             (2, 1, 4, 8, 16), "threads"),
    Constant("the smallest piece that a thread takes (`smallest_piece`), KiB",
             "exec/threads/team.hpp", r"smallest_piece = std::size_t\{(\d+)\} << 10",
             (32, 8, 128), "threads"),
    Constant("the largest piece that a thread takes (`largest_piece`), KiB",
             "exec/threads/team.hpp", r"largest_piece = std::size_t\{(\d+)\} << 10",
             (512, 128, 2048), "threads"),
    Constant("up to which length each rank combines all, in shared memory (`short_bytes`), KiB",
             SCHEDULES + "shared_memory.hpp", r"short_bytes = std::size_t\{(\d+)\} << 10",
             (8, 1, 2, 4, 16, 32), "reductions", True),
    Constant("up to which length two ranks combine all, by messages (`short_vector_bytes_of_two`), KiB",
             SCHEDULES + "cheapest.hpp", r"short_vector_bytes_of_two = std::size_t\{(\d+)\} << 10",
             (8, 1, 2, 4, 16, 32, 128), "reductions", True),
)


def source_with(constant, value):
    """Its file, with this value."""
    text = (ROOT / "include" / "adasum" / constant.file).read_text()
    found = re.findall(constant.pattern, text)
    if found != [str(constant.values[0])]:
        sys.exit(f"{constant.name}: {constant.file} has {found} in place of {constant.values[0]}")
    return re.sub(constant.pattern, lambda match: match[0].replace(match[1], str(value), 1), text)


def compile_variant(constant, value, folder):
    """Makes the program with this value of the constant."""
    include = folder / "include"
    shutil.copytree(ROOT / "include", include)
    (include / "adasum" / constant.file).write_text(source_with(constant, value))
    compiler = "mpicxx" if constant.program == "reductions" else "g++"
    subprocess.run([compiler, "-std=c++20", "-O2", "-DNDEBUG", "-pthread", f"-I{include}",
                    ROOT / "bench" / "constants" / f"{constant.program}.cpp", "-o", folder / constant.program],
                   check=True)
    shutil.rmtree(include)


def run(program):
    """Nanoseconds of each case."""
    command = [program]
    if program.name == "reductions":
        command = ["mpirun", "-n", "2", program]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {(what, int(length)): float(time) for what, length, time in (line.split() for line in text.splitlines())}


def times_of(programs, rounds):
    """The time of each case, for each of the programs: the least of the rounds for kernels, as where their memory lies makes
    some of them slow; the median for reductions, as moments in which both processors share a core make some of them fast."""
    found = [{} for _ in programs]
    for _ in range(rounds):
        for i in random.sample(range(len(programs)), len(programs)):
            for case, time in run(programs[i]).items():
                found[i].setdefault(case, []).append(time)
    typical = statistics.median if programs[0].name == "reductions" else min
    return [{case: typical(all_times) for case, all_times in one.items()} for one in found]


def regrets(times):
    """times[i][case] of each value. Gives regrets[i][case]."""
    least = {case: min(one[case] for one in times) for case in times[0]}
    return [{case: one[case] / least[case] for case in one} for one in times]


def mean(numbers):
    return math.exp(statistics.fmean(map(math.log, numbers)))


def row_of(constant, times, again):
    """A row of the table. @param again  the times of today's value once more"""
    found = regrets(times)
    means = [mean(one.values()) for one in found]

    def summary(i):
        worst = max(found[i], key=found[i].get)
        return f"{means[i]:.2f} | {found[i][worst]:.2f} ({worst[0]}, {worst[1]})"

    def value(i):
        return constant.shown if constant.shown and i == 0 else constant.values[i]

    best, costliest = means.index(min(means)), means.index(max(means))
    noise = max(max(again[case] / time, time / again[case]) for case, time in times[0].items())
    return (f"| {constant.name}{' †' if constant.changes_bits else ''} | {value(0)} | {summary(0)} | "
            f"{value(best)} | {summary(best)} | {value(costliest)} | {summary(costliest)} | {noise:.2f} |")


HEADER = ("| constant | value | mean regret | worst (case, floats) | best value | mean | worst | costliest value | mean | worst | "
          "noise |\n|---|---|---|---|---|---|---|---|---|---|---|")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="constants whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=2, help="compilations at once")
    parser.add_argument("--built", action="store_true", help="do not compile again")
    parser.add_argument("--check", action="store_true", help="only see whether the library has these constants")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "constants")
    options = parser.parse_args()
    chosen = [one for one in CONSTANTS if options.only in one.name]
    if not chosen:
        sys.exit(f"no constant's name contains '{options.only}'")
    if options.check:
        for one in chosen:
            source_with(one, one.values[1])
        return
    folders = {(one, value): options.build / f"{CONSTANTS.index(one)}-{i}" for one in chosen for i, value in enumerate(one.values)}
    if not options.built:
        shutil.rmtree(options.build, ignore_errors=True)
        for folder in folders.values():
            folder.mkdir(parents=True)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda job: compile_variant(*job, folders[job]), folders))
    print(HEADER, flush=True)
    for one in chosen:
        programs = [folders[one, value] / one.program for value in (*one.values, one.values[0])]
        *times, again = times_of(programs, options.rounds)
        print(row_of(one, times, again), flush=True)


if __name__ == "__main__":
    main()
