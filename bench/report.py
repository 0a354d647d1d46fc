#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/report.py BUILD_DIRECTORY

Reads what the benchmarks left in BUILD_DIRECTORY/raw, prints one table per heading, each with its baseline beside it, and
writes BUILD_DIRECTORY/results.json. scripts/bench runs it. Every figure is a median over interleaved repetitions, with
the quartiles in brackets.
"""

import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from readings import read_allreduce, read_compile_time, read_kernels, read_memory, read_overlap

PAIR_AIM = 3.0  # times the fast-math loops, both vectors in the processor's own caches
CEILING_AIM = 0.90  # of the ceiling, both vectors in memory
HALF_AIM = 1.8  # times the elements per second of floats, both vectors in memory
TREE_AIM = 2.2  # times as fast as pairs, eight vectors of one segment
SEGMENTS_AIM = 1.03  # times as long as one segment
ALLREDUCE_AIM = 1.15  # times MPI_Allreduce
ALLREDUCE_MEAN_AIM = 1.05
IN_PLACE_AIMS = {2: (4096, 0.65), 4: (1 << 20, 0.45)}  # times MPI_Allreduce, by ranks: from so many floats up
IN_PLACE_OVER_SUM_AIM = 1.25
COMPILE_AIM = 0.6  # seconds over the standard headers
OVERLAP_AIM = 0.70  # of the communication, hidden behind a computation that leaves the core free


def si(count):
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if count >= unit:
            return f"{count // unit} {name}"
    return str(count)


def spread(figures, form="{:.2f}", scale=1.0):
    median, q1, q3 = (form.format(figures[k] * scale) for k in ("median", "q1", "q3"))
    return f"{median} [{q1} {q3}]"


def time(figures):
    """Seconds, shown as µs."""
    micro = figures["median"] * 1e6
    return spread(figures, "{:.3f}" if micro < 10 else "{:.1f}" if micro < 1000 else "{:.0f}", 1e6)


def print_heading(*lines):
    print("", lines[0], "=" * len(lines[0]), *lines[1:], sep="\n")


def print_table(title, header, rows):
    print(f"\n{title}")
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_machine(context):
    names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cpu": names[0] if names else None,
        "cores": os.cpu_count(),
        "caches": [{key: c[key] for key in ("type", "level", "size", "num_sharing")} for c in context["caches"]],
        "load_average": context["load_avg"],
    }


def describe_compiler(build):
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    version = command(compiler, "--version")
    return version.splitlines()[0] if version else compiler


# ── tables ──

SCALARS = {"float": 4, "float_by_malloc": 4, "double": 8, "half": 2}  # of bench/pair.cpp, and their bytes


def pair_rows(kernels):
    """One dict per scalar and size, with what the table and the aims need."""
    for scalar, elements in dict.fromkeys(tuple(name.split("/")[2:]) for name in kernels):
        of = {name.split("/")[1]: figures for name, figures in kernels.items() if name.endswith(f"/{scalar}/{elements}")}
        ceiling = of["ceiling"]["median"]
        ours, fast = of["adasum_pair"]["median"], of["textbook_fast_math"]["median"]
        size = SCALARS[scalar]
        yield {
            "scalar": scalar,
            "elements": int(elements),
            "bytes_of_both": 2 * size * int(elements),
            "bytes_moved": 5 * size * int(elements),
            "seconds": of,
            "ceiling_seconds": ceiling,
            "fraction_of_ceiling": ceiling / ours,
            "speed_up_over_fast_math": fast / ours,
            "speed_up_over_strict": of["textbook_strict"]["median"] / ours,
            "speed_up_possible": fast / ceiling,
        }


def print_pair(rows):
    print_heading(
        "Adasum of two vectors",
        "In place; 5N elements moved. The library is compiled at -O2 for no processor in particular, the textbook loops at",
        "-O3 -march=native. Ceiling: one read of both vectors and one triad in place in turn, of the same bytes, in the same run.",
        "x fast: times as fast as the fast-math loops; possible: what that would be at the ceiling.",
        "float_by_malloc: vectors that begin 16 bytes into a cache line, as long std::vectors do.",
    )
    header = ["N", "strict µs", "fast-math µs", "measure+mix µs", "adasum_pair µs", "GB/s", "ceiling µs", "of ceiling",
              "x strict", "x fast", "possible"]
    for scalar in sorted({row["scalar"] for row in rows}, key=list(SCALARS).index):
        table = []
        for row in sorted((r for r in rows if r["scalar"] == scalar), key=lambda r: r["elements"]):
            s = row["seconds"]
            table.append([
                si(row["elements"]), time(s["textbook_strict"]), time(s["textbook_fast_math"]),
                time(s["measure_and_mix"]), time(s["adasum_pair"]),
                f"{row['bytes_moved'] / s['adasum_pair']['median'] / 1e9:.0f}", f"{row['ceiling_seconds'] * 1e6:.3g}",
                f"{row['fraction_of_ceiling']:.0%}", f"{row['speed_up_over_strict']:.1f}",
                f"{row['speed_up_over_fast_math']:.2f}", f"{row['speed_up_possible']:.2f}",
            ])
        print_table(scalar, header, table)


def tree_rows(kernels):
    for vectors, segments in sorted({tuple(int(part) for part in name.split("/")[2:]) for name in kernels}):
        ours, pairs = (kernels[f"tree/{kernel}/{vectors}/{segments}"] for kernel in ("adasum_tree", "pairs"))
        yield {"vectors": vectors, "segments": segments, "seconds": {"adasum_tree": ours, "pairs": pairs},
               "ratio": ours["median"] / pairs["median"]}


def print_tree(rows):
    table = [[r["vectors"], r["segments"], time(r["seconds"]["pairs"]), time(r["seconds"]["adasum_tree"]),
              f"{1 / r['ratio']:.2f}"] for r in rows]
    print_heading("Adasum of many vectors of 4 Mi floats",
                  "adasum_tree against as many calls of adasum_pair as it takes along the same tree, both in place.")
    print_table("float", ["vectors", "segments", "adasum_pair µs", "adasum_tree µs", "times as fast"], table)


def kokkos_rows(kernels):
    for elements in sorted({int(name.split("/")[2]) for name in kernels}):
        of = {space: kernels[f"kokkos/{space}/{elements}/real_time"] for space in ("serial_space", "kokkos_space")}
        yield {"elements": elements, "seconds": of,
               "ratio": of["kokkos_space"]["median"] / of["serial_space"]["median"]}


def print_kokkos(rows, what):
    table = [[si(r["elements"]), time(r["seconds"]["serial_space"]), time(r["seconds"]["kokkos_space"]), f"{r['ratio']:.2f}"]
             for r in rows]
    print_heading("Adasum of two vectors by Kokkos", f"adasum_pair in place, one segment of floats; {what}.")
    print_table("float", ["N", "serial_space µs", "kokkos_space µs", "ratio"], table)


def threads_rows(kernels):
    for what, elements in sorted({(name.split("/")[1], int(name.split("/")[3])) for name in kernels}):
        if what == "ceiling":
            continue

        def of(call, by):
            return kernels.get(f"threads/{call}/{by}/{elements}/real_time")

        ceiling = {by: of("ceiling", by) for by in ("alone", "together")} if what == "pair" else {}
        seconds = {by: of(what, by) for by in ("serial_space", "threads_space")}
        yield {"call": what, "elements": elements, "seconds": seconds | ceiling,
               "speed_up": seconds["serial_space"]["median"] / seconds["threads_space"]["median"],
               "speed_up_of_ceiling": ceiling["alone"]["median"] / ceiling["together"]["median"] if ceiling else None}


def print_threads(rows, threads):
    table = [[r["call"], si(r["elements"]), time(r["seconds"]["serial_space"]), time(r["seconds"]["threads_space"]),
              f"{r['speed_up']:.2f}", f"{r['speed_up_of_ceiling']:.2f}" if r["speed_up_of_ceiling"] else ""] for r in rows]
    print_heading("Several threads", f"adasum_pair in place, adasum_tree of eight vectors; one segment of floats; {threads} threads.",
                  "Ceiling: as many times as fast is one read of both vectors and one triad by as many threads.")
    print_table("float", ["call", "N", "serial_space µs", "threads_space µs", "times as fast", "ceiling"], table)


def print_allreduce(rows):
    columns = ["recursive_doubling", "recursive_halving", "all_to_all", "messages", "automatic", "again", "one_shot", "sum", "shared_memory", "direct_sum"]
    print_heading(
        "Allreduce",
        "Ratio to MPI_Allreduce(MPI_IN_PLACE, MPI_SUM) of the same round, one segment of floats. Plans, but for one_shot, a call",
        "that is set up each time, and again, a call that finds its plan.",
        "automatic: in memory that the ranks share, by way of a copy; messages: what it chooses otherwise. sum: rules::sum by the",
        "automatic schedule, nothing measured. shared_memory, direct_sum: automatic and sum in the plan's own buffer.",
    )
    for mpi, ranks in dict.fromkeys((row["mpi"], row["ranks"]) for row in rows):
        here = {(row["elements"], row["name"]): row for row in rows if (row["mpi"], row["ranks"]) == (mpi, ranks)}
        table = [[si(n), time(here[n, "MPI_Allreduce"]["seconds"]), *(spread(here[n, c]["ratio"]) for c in columns)]
                 for n in sorted({n for n, _ in here})]
        checked = [f"With agreement checks, {si(n)} floats, automatic: {spread(row['ratio'])}"
                   for (n, name), row in here.items() if name == "automatic_checked"]
        over = f" on {os.cpu_count()} cores" if ranks > os.cpu_count() else ""
        print_table(f"{mpi}, {ranks} ranks{over}", ["N", "MPI_Allreduce µs", *columns], table)
        print(*checked, sep="\n")


def print_overlap(rows):
    print_heading(
        "Reductions beside a backward pass",
        "adasum::bucketed. hidden: (computation + communication - together) / communication. inside: time in ready() and",
        "test(), over that of communication alone: what is work of the rank's own core, a computation there cannot hide.",
        "Computation: on the processor, the rank's own core; elsewhere, as on an accelerator (the clock says when a layer is due).",
    )
    for mpi, ranks in dict.fromkeys((row["mpi"], row["ranks"]) for row in rows):
        table = [[si(r["elements"]), r["buckets"], r["schedule"], r["computation"],
                  *(time(r["seconds"][key]) for key in ("computing", "communicating", "together")),
                  spread(r["hidden"]), spread(r["work"])]
                 for r in rows if (r["mpi"], r["ranks"]) == (mpi, ranks)]
        print_table(f"{mpi}, {ranks} ranks", ["N", "buckets", "schedule", "computation", "computation µs",
                                              "communication µs", "together µs", "hidden", "inside"], table)


def print_memory(rows):
    print_heading(
        "Memory",
        "Of one rank, median over the ranks. Scratch: what the plan's execution space was asked for, in gradients. Resident memory",
        "at its peak, and what of it was added since MPI_Init and one short sum, in gradients: 1 is the gradient itself. direct:",
        "in the plan's own buffer; pages that the ranks share count for each of them that touches them.",
    )
    for mpi, ranks in dict.fromkeys((row["mpi"], row["ranks"]) for row in rows):
        table = [[si(r["elements"]), r["name"], f"{r['scratch']['median']:.2f}", spread(r["peak_resident"], "{:.1f}", 2**-20),
                  spread(r["added"])]
                 for r in rows if (r["mpi"], r["ranks"]) == (mpi, ranks)]
        print_table(f"{mpi}, {ranks} ranks", ["N", "schedule", "scratch / N", "peak resident MiB", "added / N"], table)


def print_compile_time(rows):
    print_heading("Compile time", "g++ -std=c++20 -fsyntax-only, processor time: the header over the standard headers that it includes.")
    table = [[row["header"], *(spread(figures) for figures in (row["seconds"]["standard"], row["seconds"]["library"], row["cost"]))]
             for row in rows]
    print_table("seconds", ["header", "standard headers", "with it", "cost"], table)


def half_rates(pair, last):
    """Elements per second of half over those of float, both in memory."""
    seconds = {(r["scalar"], r["elements"]): r["seconds"]["adasum_pair"]["median"] for r in pair}
    for r in pair:
        if r["scalar"] == "half" and r["bytes_of_both"] > last:
            yield r["elements"], seconds["float", r["elements"]] / seconds["half", r["elements"]]


def segment_costs(tree):
    whole = {r["vectors"]: r["seconds"]["adasum_tree"]["median"] for r in tree if r["segments"] == 1}
    for r in tree:
        if r["vectors"] == 8 and r["segments"] > 1 and 8 in whole:
            yield r, r["seconds"]["adasum_tree"]["median"] / whole[8]


def means(allreduce, name):
    """The geometric mean of the ratios to MPI_Allreduce, for each MPI and number of ranks."""
    for mpi, ranks in dict.fromkeys((r["mpi"], r["ranks"]) for r in allreduce):
        yield (mpi, ranks), statistics.geometric_mean(
            r["ratio"]["median"] for r in allreduce if (r["mpi"], r["ranks"], r["name"]) == (mpi, ranks, name))


def over_sum_in_place(allreduce):
    sums = {(r["mpi"], r["ranks"], r["elements"]): r["seconds"]["median"] for r in allreduce if r["name"] == "direct_sum"}
    for r in allreduce:
        if r["name"] == "shared_memory":
            yield r, r["seconds"]["median"] / sums[r["mpi"], r["ranks"], r["elements"]]


def judge(results):
    """The aims, and where they are missed."""
    caches = [c for c in results["machine"]["caches"] if c["type"] != "Instruction"]
    own = max(c["size"] for c in caches if c["level"] <= 2)
    last = max(c["size"] for c in caches)
    floats = [row for row in results["pair"] if row["scalar"] == "float"]
    judged = [
        (f"pair at least {PAIR_AIM:g} x the fast-math loops, in cache",
         [(si(r["elements"]), r["speed_up_over_fast_math"],
           f"{r['speed_up_over_fast_math']:.2f} of {r['speed_up_possible']:.2f} possible")
          for r in floats if r["bytes_of_both"] <= own], lambda x: x >= PAIR_AIM),
        (f"pair at least {CEILING_AIM:g} of the ceiling, in memory",
         [(f"{si(r['elements'])} ({r['scalar']})", r["fraction_of_ceiling"], f"{r['fraction_of_ceiling']:.2f}")
          for r in results["pair"] if r["scalar"] != "half" and r["bytes_of_both"] > last], lambda x: x >= CEILING_AIM),
        (f"pair of half at least {HALF_AIM:g} x as many elements per second as of float, in memory",
         [(si(n), rate, f"{rate:.2f}") for n, rate in half_rates(results["pair"], last)], lambda x: x >= HALF_AIM),
        (f"tree of eight at least {TREE_AIM:g} x as fast as pairs, one segment",
         [(f"{r['segments']} segments", 1 / r["ratio"], f"{1 / r['ratio']:.2f}")
          for r in results["tree"] if (r["vectors"], r["segments"]) == (8, 1)], lambda x: x >= TREE_AIM),
        (f"tree of eight, many segments: at most {SEGMENTS_AIM:g} x one segment's time",
         [(f"{r['segments']} segments", over, f"{over:.2f}") for r, over in segment_costs(results["tree"])],
         lambda x: x <= SEGMENTS_AIM),
        (f"allreduce, automatic schedule, at most {ALLREDUCE_AIM:g} x MPI_Allreduce",
         [(f"{si(r['elements'])} ({r['mpi']}, {r['ranks']} ranks)",
           r["ratio"]["median"], f"{r['ratio']['median']:.2f}")
          for r in results["allreduce"] if r["name"] == "automatic"], lambda x: x <= ALLREDUCE_AIM),
        (f"the same, geometric mean over the lengths at most {ALLREDUCE_MEAN_AIM:g}",
         [(f"{mpi}, {ranks} ranks", mean, f"{mean:.2f}") for (mpi, ranks), mean in means(results["allreduce"], "automatic")],
         lambda x: x <= ALLREDUCE_MEAN_AIM),
        *[(f"in place, {ranks} ranks from {si(least)} floats up, at most {aim:g} x MPI_Allreduce",
           [(f"{si(r['elements'])} ({r['mpi']})", r["ratio"]["median"], f"{r['ratio']['median']:.2f}")
            for r in results["allreduce"] if r["name"] == "shared_memory" and r["ranks"] == ranks and r["elements"] >= least],
           lambda x, aim=aim: x <= aim) for ranks, (least, aim) in IN_PLACE_AIMS.items()],
        (f"in place, at most {IN_PLACE_OVER_SUM_AIM:g} x rules::sum in place",
         [(f"{si(r['elements'])} ({r['mpi']}, {r['ranks']} ranks)", over, f"{over:.2f}")
          for r, over in over_sum_in_place(results["allreduce"])], lambda x: x <= IN_PLACE_OVER_SUM_AIM),
        (f"at least {OVERLAP_AIM:g} of the communication hidden, the computation elsewhere",
         [(f"{r['schedule']} ({r['mpi']})", r["hidden"]["median"], f"{r['hidden']['median']:.2f}")
          for r in results["overlap"] if r["computation"] == "elsewhere"], lambda x: x >= OVERLAP_AIM),
        (f"a header costs at most {COMPILE_AIM:g} s over the standard ones",
         [(r["header"], r["cost"]["median"], f"{r['cost']['median']:.2f}") for r in results["compile_time"]],
         lambda x: x <= COMPILE_AIM),
    ]
    print_heading("Aims", "For float; judged by the medians.")
    for aim, cases, met in judged:
        missed = [f"{where}: {shown}" for where, figure, shown in cases if not met(figure)]
        print(f"  {aim}: met in {len(cases) - len(missed)} of {len(cases)} cases"
              + ("; missed at " + ", ".join(missed) if missed else ""))


def main(build):
    raw = build / "raw"
    pair, context = read_kernels(raw / "pair.json")
    tree, _ = read_kernels(raw / "tree.json")
    kokkos, kokkos_context = read_kernels(raw / "kokkos.json", "real_time")
    threads, threads_context = read_kernels(raw / "threads.json", "real_time")
    allreduce = [row for path in sorted(raw.glob("allreduce-*.json")) for row in read_allreduce(path)]
    results = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": command("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "machine": describe_machine(context),
        "compiler": describe_compiler(build),
        "mpi": sorted({row["mpi"] for row in allreduce}),
        "pair": list(pair_rows(pair)),
        "tree": list(tree_rows(tree)),
        "kokkos": list(kokkos_rows(kokkos)),
        "threads": list(threads_rows(threads)),
        "allreduce": allreduce,
        "overlap": [row for path in sorted(raw.glob("overlap-*.json")) for row in read_overlap(path)],
        "memory": [row for path in sorted(raw.glob("memory-*.json")) for row in read_memory(path)],
        "compile_time": [read_compile_time(raw / "compile_time.json")],
    }
    (build / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    machine = results["machine"]
    print(f"\n{machine['cpu']}, {machine['cores']} cores; {results['compiler']}; {', '.join(results['mpi'])}; "
          f"commit {results['commit']}; {results['date']}; load before: {machine['load_average'][0]:.2f}")
    print_pair(results["pair"])
    print_tree(results["tree"])
    print_kokkos(results["kokkos"], kokkos_context["kokkos"])
    print_threads(results["threads"], threads_context["threads"])
    print_allreduce(results["allreduce"])
    print_overlap(results["overlap"])
    print_memory(results["memory"])
    print_compile_time(results["compile_time"])
    judge(results)
    print(f"\nAll figures: {build / 'results.json'}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
