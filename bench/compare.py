#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compare.py OLD.json NEW.json

What changed between two runs of scripts/bench: for each figure that both have, its medians and the change. Marked are those
whose medians are further apart than the quartiles of either run: what a run by itself scatters is no change. That is no proof
of one: between two runs of the same code a machine may change too (its clock, its pages), and a short run's quartiles are
close together.
"""

import json
import pathlib
import sys

# What tells the rows of a heading apart; everything else in a row is a figure or says how it was taken.
KEYS = {
    "pair": ("scalar", "elements"),
    "tree": ("vectors", "segments"),
    "kokkos": ("elements",),
    "threads": ("call", "elements"),
    "allreduce": ("mpi", "ranks", "elements", "name"),
    "overlap": ("mpi", "ranks", "elements", "buckets", "schedule", "computation"),
    "memory": ("mpi", "ranks", "elements", "name"),
    "compile_time": ("header",),
}
# What should be the same in both runs for times to be comparable.
CONDITIONS = {
    "processor": lambda run: run["machine"]["cpu"],
    "cores": lambda run: run["machine"]["cores"],
    "compiler": lambda run: run["compiler"],
    "MPI": lambda run: ", ".join(run["mpi"]),
}


def figures_within(row, path=()):
    """(path, {median, q1, q3}) of everything in a row that has a median."""
    for name, value in row.items():
        if isinstance(value, dict):
            if "median" in value:
                yield path + (name,), value
            else:
                yield from figures_within(value, path + (name,))


def figures(results):
    """{(heading, row, figure): {median, q1, q3}}"""
    return {
        (heading, " ".join(str(row.get(key)) for key in keys), " ".join(path)): figure
        for heading, keys in KEYS.items()
        for row in results.get(heading, [])
        for path, figure in figures_within(row)
    }


def exceeds_spreads(old, new):
    """Whether the medians are further apart than the quartiles of either run."""
    return abs(new["median"] - old["median"]) > max(run["q3"] - run["q1"] for run in (old, new))


def changes(old, new):
    """One dict for each figure that both runs have, in the new one's order."""
    before = figures(old)
    for key, after in figures(new).items():
        if key in before:
            was, now = before[key]["median"], after["median"]
            yield {
                **dict(zip(("heading", "row", "figure"), key)),
                "old": was,
                "new": now,
                "change": (now - was) / abs(was) if was else None,
                "marked": exceeds_spreads(before[key], after),
            }


def different_conditions(old, new):
    return [f"{name}: {of(old)} before, {of(new)} now" for name, of in CONDITIONS.items() if of(old) != of(new)]


def print_comparison(old, new):
    rows = list(changes(old, new))
    print(f"\nChanges from {old['commit']} ({old['date']}) to {new['commit']} ({new['date']})\n"
          "Medians. *: changed by more than the quartiles of either run are apart. Seconds, bytes, or fractions and ratios.")
    for line in different_conditions(old, new):
        print(f"Not comparable without care: other {line}")
    for heading in dict.fromkeys(row["heading"] for row in rows):
        print(f"\n{heading}")
        here = [row for row in rows if row["heading"] == heading]
        width = max(len(f"{row['row']} {row['figure']}") for row in here)
        for row in here:
            what = f"{row['row']} {row['figure']}"
            change = "" if row["change"] is None else f"{row['change']:+.1%}"
            mark = "*" if row["marked"] else ""
            print(f"  {what:{width}} {row['old']:11.4g} {row['new']:11.4g} {change:>8} {mark}".rstrip())
    marked = [row for row in rows if row["marked"]]
    print(f"\n{len(marked)} of {len(rows)} figures changed by more than their spread: "
          f"{sum(row['new'] < row['old'] for row in marked)} are lower, {sum(row['new'] > row['old'] for row in marked)} higher")


def main(old, new):
    print_comparison(*(json.loads(pathlib.Path(path).read_text()) for path in (old, new)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: bench/compare.py OLD.json NEW.json")
    main(*sys.argv[1:])
