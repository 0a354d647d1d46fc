#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/scale/report.py SCALE.json: the tables of docs/scale.md, in Markdown."""

import statistics
import sys

from results import HIERARCHICAL, Results, size_name

TITLES = {
    "messages": "Messages only",
    "arithmetic": "With arithmetic",
    "free": "Messages only, if messages cost no processor anything",
}
LONG = 256 * 1024  # bytes from which the aims ask for the price of a sum
AIMS = {"messages": 1.0, "arithmetic": 1.1, "free": 1.0}
ALL_SCHEDULES_AT = 256  # ranks


def short(name):
    """D, D4, H, H8, H4/16 (radix 4, at most 16 parts), A."""
    letters = {"recursive_doubling": "D", "recursive_halving": "H", "all_to_all": "A"}
    schedule, _, parameters = name.strip("}").partition("{")
    return letters[schedule] + parameters.replace(",", "/")


def cell(entry):
    return "–" if entry is None else f"{entry[1]:.2f} {short(entry[0])}"


def print_table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def print_scenario(results, scenario, figure):
    sizes = sorted({size for _, size in results.both(scenario)})
    here = set(results.both(scenario))
    rows = [[ranks, *(cell(figure(scenario, ranks, size)) if (ranks, size) in here else "–" for size in sizes)]
            for ranks in results.ranks(scenario)]
    print_table(["ranks", *map(size_name, sizes)], rows)


def print_schedules(results, scenario, ranks):
    """Every schedule at one number of ranks."""
    sizes = results.sizes(scenario, ranks)
    ratios = [results.ratios(scenario, ranks, size) for size in sizes]
    names = list(dict.fromkeys(name for ratio in ratios for name in ratio))
    rows = [[f"`{name}`", *(f"{ratio[name]:.2f}" if name in ratio else "–" for ratio in ratios)]
            for name in sorted(names, key=place)]
    sums = [results.sum(scenario, ranks, size) for size in sizes]
    rows.append(["fastest `MPI_Allreduce`, µs", *(f"{seconds * 1e6:.4g} ({name})" for name, seconds in sums)])
    print_table([f"{ranks} ranks", *map(size_name, sizes)], rows)


def place(name):
    """In tables: whole vectors, halves, wider and wider, more and more parts."""
    schedule, _, parameters = name.strip("}").partition("{")
    radix, _, parts = parameters.partition(",")
    order = {"recursive_doubling": 0, "recursive_halving": 1, "all_to_all": 2, HIERARCHICAL: 3}
    return order[schedule], int(radix or 2), int(parts) if parts else float("inf")


def judge(results, scenario):
    aim = AIMS[scenario]
    entries = [(results.best(scenario, r, b)[1], r, b) for r, b in results.both(scenario) if b >= LONG]
    powers = [e for e in entries if e[1] & (e[1] - 1) == 0]
    others = [e for e in entries if e not in powers]
    print(f"From {size_name(LONG)} up, best schedule at most {aim:g}:")
    for what, some in (("powers of two", powers), ("other numbers of ranks", others)):
        if not some:
            continue
        worst = max(some)
        print(f"* {what}: met in {sum(round(e[0], 2) <= aim for e in some)} of {len(some)}; geometric mean "
              f"{statistics.geometric_mean([e[0] for e in some]):.2f}, worst {worst[0]:.2f} "
              f"({worst[1]} ranks, {size_name(worst[2])})")
    loss = [a[1] / results.best(scenario, r, b)[1] for r, b in results.both(scenario)
            if (a := results.automatic(scenario, r, b)) is not None]
    print(f"* `automatic` over the best schedule, all sizes: geometric mean {statistics.geometric_mean(loss):.2f}, "
          f"worst {max(loss):.2f}\n")


def print_model(results, scenario):
    """Model over simulation, by schedule."""
    found = {}
    for ranks, size in results.both(scenario):
        for name, seconds in results.schedules[scenario, ranks, size].items():
            if (ranks, size, name) in results.model:
                found.setdefault(name, []).append(results.model[ranks, size, name] / seconds)
    print_table(["schedule", "least", "median", "greatest"],
                [[f"`{name}`", *(f"{of(found[name]):.2f}" for of in (min, statistics.median, max))]
                 for name in sorted(found, key=place)])


def main(path):
    results = Results(path)
    document = results.document
    print(f"{document['simulator']}; kernels of {document['kernels_measured_on']}; {document['compiler']}; "
          f"commit {document['commit']}\n")
    for scenario, title in TITLES.items():
        if not results.both(scenario):
            continue
        print(f"### {title}\n\nBest schedule:\n")
        print_scenario(results, scenario, results.best)
        print("`automatic`:\n")
        print_scenario(results, scenario, results.automatic)
        judge(results, scenario)
        if ALL_SCHEDULES_AT in results.ranks(scenario):
            print_schedules(results, scenario, ALL_SCHEDULES_AT)
    print("### The model over the simulation, with arithmetic\n")
    print_model(results, "arithmetic")


if __name__ == "__main__":
    main(sys.argv[1])
