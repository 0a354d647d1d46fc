#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compile_programs.py [--repetitions N] [COMPILER]

What it costs to compile small programs that use the library, header-only and with what adasum::compiled_mpi holds compiled
elsewhere, by COMPILER (mpicxx.openmpi unless given). Prints the table of docs/performance.md: seconds of processor time, medians
of N repetitions (3 unless given), in which all are compiled in turns; in brackets how many times those of a program that calls
MPI_Allreduce; and the most memory that the compiler had. Takes some four minutes of processor for each repetition.
"""
import argparse
import pathlib
import re
import statistics
import tempfile

import compile_cost
from compile_cost import ROOT, WAYS
from compile_time import compile_once

MPI = """#include <mpi.h>
#include <cstdio>
#include <vector>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::vector<float> gradient(1000, 1.0f);
  MPI_Allreduce(MPI_IN_PLACE, gradient.data(), 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("%g", gradient[0]);
  MPI_Finalize();
}
"""
MORE = {"a call with another rule": "adasum::combine_allreduce(exec, comm, gradient, adasum::rules::mean{});",
        "a call with a schedule": "adasum::adasum_allreduce(exec, comm, gradient, adasum::schedules::recursive_halving{});",
        "a call with another element type":
            "std::vector<double> other(1000, 1.0);\n    adasum::adasum_allreduce(exec, comm, other);"}


def programs():
    """{name: (source, flags)}"""
    readme = compile_cost.programs()["README"][0]
    call = re.search(r"^ *adasum::report .*\n", readme, re.MULTILINE)[0]
    found = {f"`#include <{header}>` (`-fsyntax-only`)": (f"#include <{header}>\n", ["-fsyntax-only"])
             for header in ("adasum/adasum.hpp", "adasum/mpi.hpp")}
    found["the program of the README, at `-O2`"] = (readme, ["-O2"])
    for what, line in MORE.items():
        found[f"… and {what}"] = (readme.replace(call, f"{call}    {line}\n"), ["-O2"])
    found["the program of the README, at `-O0`"] = (readme, ["-O0"])
    found["a program with one `adasum_pair` of floats, at `-O2`"] = (compile_cost.PAIR, ["-O2"])
    return found


def main():
    parser = argparse.ArgumentParser(description="What compiling programs costs.")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("compiler", nargs="?", default="mpicxx.openmpi")
    given = parser.parse_args()
    base = ("a program that calls `MPI_Allreduce`, at `-O2`", "header-only")
    library = ("the library itself, once", "compiled")
    with tempfile.TemporaryDirectory() as folder:
        command = [given.compiler, "-std=c++20", "-pthread", f"-I{ROOT / 'include'}", "-o", f"{folder}/main.o"]
        commands, sources = {}, {base: (MPI, ["-O2"])}
        for name, (source, flags) in programs().items():
            sources |= {(name, way): (source, [*flags, *more]) for way, more in WAYS.items()}
        for number, (key, (source, flags)) in enumerate(sources.items()):
            file = pathlib.Path(folder) / f"{number}.cpp"
            file.write_text(source)
            commands[key] = [[*command, *flags, "-c", file]]
        commands[library] = [[*command, *WAYS["compiled"], "-O2", "-c", ROOT / "src" / name] for name in ("engine.cpp", "mpi.cpp")]
        readings = {key: [] for key in commands}
        for _ in range(given.repetitions):
            for key, list_of_one in commands.items():
                readings[key].append([compile_once(one) for one in list_of_one])
    seconds = {key: statistics.median(sum(one[0] for one in run) for run in runs) for key, runs in readings.items()}
    memory = {key: max(one[1] for run in runs for one in run) for key, runs in readings.items()}

    def cell(key):
        return f"{seconds[key]:.1f} ({seconds[key] / seconds[base]:.1f}), {memory[key]:.0f} MB" if key in seconds else "–"

    print("| | header-only | compiled once |\n|---|---|---|")
    for name in dict.fromkeys(name for name, _ in commands):
        print(f"| {name} | {cell((name, 'header-only'))} | {cell((name, 'compiled'))} |")


if __name__ == "__main__":
    main()
