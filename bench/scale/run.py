#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/scale/run.py BUILD_DIRECTORY [--quick | --check] [--constants] [--seconds N]
                       [--scenarios NAME…] [--ranks N…] [--sizes BYTES…]

Runs adasum_scale_allreduce under SimGrid's SMPI for every number of ranks, and writes BUILD_DIRECTORY/scale.json: seconds
of each schedule, and of the fastest MPI_Allreduce among SMPI's algorithms, for each scenario, number of ranks and size.
scripts/bench-scale builds what it needs, runs it, and shows the results by bench/scale/report.py. --constants: arithmetic
takes what schedules::machine says, and is not measured. --scenarios, --ranks and --sizes: these alone.

Simulated time does not depend on this machine's load. Runs that have not begun after the given seconds are left out and
named: those of the most ranks.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
KIB, MIB = 1 << 10, 1 << 20
SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 100_000_000]
RANKS = [3, 5, 6, 7, 16, 64, 100, 256, 1000, 1024]
QUICK_SIZES = [4 * KIB, 256 * KIB, 16 * MIB]
QUICK_RANKS = [3, 7, 16, 256]
CHECKED_RANKS = [1, 2, 3, 5, 6, 7, 8, 15, 16, 22, 100]
DEFAULT_SECONDS = 540

# Whether arithmetic is charged, and what each message costs the processors of its sender and of its receiver, in seconds.
SCENARIOS = {
    "messages": dict(arithmetic=False, per_message=1e-7, ranks=RANKS),
    "arithmetic": dict(arithmetic=True, per_message=1e-7, ranks=RANKS),
    "free": dict(arithmetic=False, per_message=0, ranks=[16, 64, 100, 256]),
}

# Many ranks take the simulator minutes, so they get fewer sizes and radices; its time grows faster than the number of
# messages that are under way at once, ranks × radix.
FEWER_SIZES = [4 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB, 100_000_000]


def sizes_for(ranks, sizes):
    return sizes if ranks < 100 or ranks == 256 else [size for size in sizes if size in FEWER_SIZES]


def widest_radix(ranks):
    return 16 if ranks <= 64 else 8


# Those of SMPI's algorithms that were the fastest for some size at some number of ranks. Where one is left out, the
# simulator would take minutes for it: rab1 and rab2 end in messages from all ranks to all, lr is a ring.
MPI_ALGORITHMS = ["rdb", "rab_rdb", "rab1", "rab2", "lr"]
MOST_RANKS = {"rab1": 64, "rab2": 128}


def algorithms(ranks, size):
    for name in MPI_ALGORITHMS:
        if ranks > MOST_RANKS.get(name, 1024):
            continue
        if name == "rab1" and ranks & (ranks - 1):  # powers of two only
            continue
        if name == "lr" and ranks > 256 and size < 16 * MIB:  # 2 (P - 1) steps
            continue
        if name == "rdb" and ranks > 256 and size > MIB:  # log2 P times the bytes
            continue
        yield name


def smpirun(build, ranks, scenario, arguments, algorithm=None):
    overhead = f"0:{SCENARIOS[scenario]['per_message']}:0"
    # Factors of 1, written "0:1" (SimGrid 3.32 does not take "1"): SMPI's own are those of an Ethernet of 1 Gb/s.
    options = ["smpi/simulate-computation:no", "smpi/bw-factor:0:1", "smpi/lat-factor:0:1", "network/crosstraffic:no",
               "surf/precision:1e-12", f"smpi/os:{overhead}", f"smpi/ois:{overhead}", f"smpi/or:{overhead}"]
    if algorithm:
        options.append(f"smpi/allreduce:{algorithm}")
    if algorithm == "rab2":  # the one all-to-all that serves every number of ranks and size
        options.append("smpi/alltoall:basic_linear")
    command = ["smpirun", "-no-privatize", "-np", str(ranks), "-platform", str(HERE / "fat_tree.xml"), "-hostfile",
               str(build / "hosts"), "--log=root.thres:critical", *(f"--cfg={option}" for option in options),
               str(build / "adasum_scale_allreduce"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nfailed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def simulate(build, mode, scenario, ranks, sizes, algorithm=None):
    speeds = build / "kernel_speeds.txt" if SCENARIOS[scenario]["arithmetic"] else "-"
    arguments = [mode, speeds, *sizes] if mode == "sum" else [mode, speeds, widest_radix(ranks), *sizes]
    rows = []
    for line in smpirun(build, ranks, scenario, arguments, algorithm).splitlines():
        _, size, name, seconds = line.split()
        rows.append({"scenario": scenario, "ranks": ranks, "bytes": int(size), "name": algorithm or name,
                     "kind": mode, "seconds": float(seconds)})
    return rows


def tasks(options, ranks_list, sizes):
    """Arguments of simulate(), one size at a time where it takes long, so that the processor's cores share the work."""
    for scenario in options.scenarios:
        for ranks in options.ranks or sorted(set(ranks_list) & set(SCENARIOS[scenario]["ranks"])):
            some = options.sizes or sizes_for(ranks, sizes)
            for group in [[size] for size in some] if ranks > 64 else [some]:
                yield "adasum", scenario, ranks, group
            for algorithm in MPI_ALGORITHMS:
                wanted = [size for size in some if algorithm in algorithms(ranks, size)]
                if wanted:
                    yield "sum", scenario, ranks, wanted, algorithm


def run_all(build, work, seconds):
    """Few ranks first, so that the time limit takes the longest runs; the baselines of a number of ranks before ours."""
    start, rows, left_out = time.monotonic(), [], []

    def run(task):
        if time.monotonic() - start > seconds:
            left_out.append(task)
            return []
        return simulate(build, *task)

    ordered = sorted(work, key=lambda task: (task[2], task[0] != "sum"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, result in enumerate(pool.map(run, ordered), 1):
            rows += result
            if sys.stderr.isatty():
                print(f"\r{done} of {len(ordered)} runs", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return rows, left_out


def model(build, ranks_list, sizes):
    """What include/adasum/schedules/cost.hpp says of the same runs, and what automatic chooses."""
    predicted, chosen = [], []
    for ranks in ranks_list:
        command = [build / "adasum_scale_model", *map(str, [ranks, *sizes])]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in lines.splitlines():
            _, size, name, value = line.split()
            row = {"ranks": ranks, "bytes": int(size)}
            if name == "automatic":
                chosen.append({**row, "name": value})
            else:
                predicted.append({**row, "name": name, "seconds": float(value)})
    return {"model": predicted, "automatic": chosen}


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def processor():
    names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--constants", action="store_true")
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS)
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--ranks", nargs="+", type=int)
    parser.add_argument("--sizes", nargs="+", type=int)
    options = parser.parse_args()
    build = options.build.resolve()
    (build / "hosts").write_text("".join(f"host-{i}\n" for i in range(1024)))

    print("Checking the results on", ", ".join(map(str, CHECKED_RANKS)), "simulated ranks")
    for ranks in CHECKED_RANKS:
        smpirun(build, ranks, "messages", ["check"])
    if options.check:
        return
    kernels = [build / "adasum_scale_model", "speeds"] if options.constants else [build / "adasum_scale_kernel_speeds"]
    speeds = subprocess.run(kernels, capture_output=True, text=True, check=True).stdout
    (build / "kernel_speeds.txt").write_text(speeds)

    ranks_list, sizes = (QUICK_RANKS, QUICK_SIZES) if options.quick else (RANKS, SIZES)
    work = list(tasks(options, ranks_list, sizes))
    print(f"Simulating: {len(work)} runs")
    rows, left_out = run_all(build, work, options.seconds)
    results = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": first_line("git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=12"),
        "simulator": first_line("smpirun", "-version"),
        "compiler": first_line("g++", "--version"),
        "kernels_measured_on": "no processor (constants)" if options.constants else processor(),
        "scenarios": SCENARIOS,
        "kernel_speeds": [line.split() for line in speeds.splitlines()],
        "left_out": left_out,
        **model(build, options.ranks or ranks_list, options.sizes or sizes),
        "rows": sorted(rows, key=lambda r: (r["scenario"], r["ranks"], r["bytes"], r["kind"], r["seconds"])),
    }
    (build / "scale.json").write_text(json.dumps(results, indent=1) + "\n")
    for task in left_out:
        print("Left out, for lack of time:", *task)


if __name__ == "__main__":
    main()
