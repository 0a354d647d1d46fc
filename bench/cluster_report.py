#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/cluster_report.py BUILD_DIRECTORY [--page PAGE.md]

Reads what adasum_bench_cluster left in BUILD_DIRECTORY/raw-cluster (SHAPE-RATE.json), prints tables in Markdown, and writes
BUILD_DIRECTORY/cluster.json. With --page, the tables replace what stands below the line TABLES of that page.
scripts/bench-cluster runs it. Every figure is a median over interleaved rounds, with the quartiles in brackets.
"""

import argparse
import datetime
import json
import os
import pathlib

from readings import read_allreduce, summary
from report import command, si, spread

TABLES = "<!-- tables: written by bench/cluster_report.py --page -->"
BASELINE = "MPI_Allreduce"


def read(path):
    """One dict per row, with its ratio to MPI_Allreduce, and how much later the slowest rank ends than the quickest."""
    shape, rate = path.stem.split("-")
    quickest = [row["quickest"] for row in json.loads(path.read_text())["rows"]]
    raw = [row["seconds"] for row in json.loads(path.read_text())["rows"]]
    for row, slow, quick in zip(read_allreduce(path), raw, quickest):
        yield {"shape": shape, "rate": rate, **row, "wait": summary([a - b for a, b in zip(slow, quick)])}


def milliseconds(figures):
    form = "{:.3f}" if figures["median"] < 1e-2 else "{:.1f}"
    return spread(figures, form, 1e3)


def fastest(rows):
    return min(rows, key=lambda row: row["seconds"]["median"])


def is_forced(row):
    return row["name"].startswith(BASELINE + " ")


def table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def summary_of(rows):
    """A line for each length: the sum, the fastest sum, and the fastest of ours."""
    for elements in dict.fromkeys(row["elements"] for row in rows):
        of = [row for row in rows if row["elements"] == elements]
        default = next(row for row in of if row["name"] == BASELINE)
        sums = [row for row in of if is_forced(row)] + [default]
        ours = [row for row in of if not row["name"].startswith(BASELINE)]
        best_sum, best, automatic = fastest(sums), fastest(ours), next(r for r in of if r["name"] == "plan automatic")
        floor = best_sum["seconds"]["median"]
        yield [si(elements), milliseconds(default["seconds"]),
               f"{milliseconds(best_sum['seconds'])} ({best_sum['name'].removeprefix(BASELINE).strip() or 'default'})",
               f"{automatic['seconds']['median'] / floor:.2f} ({automatic['schedule']})",
               f"{best['seconds']['median'] / floor:.2f} ({best['name']})"]


def ratios_of(rows, names):
    """A line for each length: every way of ours, divided by MPI_Allreduce of the same round."""
    for elements in dict.fromkeys(row["elements"] for row in rows):
        of = {row["name"]: row for row in rows if row["elements"] == elements}
        yield [si(elements), *(spread(of[name]["ratio"]) for name in names)]


def waits_of(rows, names):
    for elements in dict.fromkeys(row["elements"] for row in rows):
        of = {row["name"]: row for row in rows if row["elements"] == elements}
        yield [si(elements), *(milliseconds(of[name]["wait"]) for name in (BASELINE, *names))]


def markdown(results):
    yield f"Commit {results['commit']}, {results['date']}, {results['mpi']}, {results['cores']} cores, load average at the end " \
          f"{results['load_average'][0]:.2f}."
    yield ""
    for shape, rate in dict.fromkeys((row["shape"], row["rate"]) for row in results["rows"]):
        rows = [row for row in results["rows"] if (row["shape"], row["rate"]) == (shape, rate)]
        names = [name for name in dict.fromkeys(row["name"] for row in rows) if not name.startswith(BASELINE)]
        links = "not limited" if rate == "none" else rate
        yield f"## {shape}, links: {links}"
        yield ""
        yield from table(["floats", "`MPI_Allreduce`, ms", "its fastest algorithm, ms", "plan, automatic", "fastest of ours"],
                         summary_of(rows))
        yield "Times, divided by that of `MPI_Allreduce` in the same round:"
        yield ""
        yield from table(["floats", *names], ratios_of(rows, names))
        yield "How much later the slowest rank ends than the fastest, ms:"
        yield ""
        plans = [name for name in names if name.startswith("plan ")]
        yield from table(["floats", f"`{BASELINE}`", *plans], waits_of(rows, plans))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = [row for path in sorted((arguments.build / "raw-cluster").glob("*.json")) for row in read(path)]
    results = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": command("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "mpi": rows[0]["mpi"],
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "rows": rows,
    }
    (arguments.build / "cluster.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    text = "\n".join(markdown(results))
    print(text)
    if arguments.page:
        above = arguments.page.read_text().partition(TABLES)
        if not above[1]:
            raise SystemExit(f"{arguments.page} has no line {TABLES}")
        arguments.page.write_text(above[0] + TABLES + "\n\n" + text)
    print(f"All figures: {arguments.build / 'cluster.json'}")


if __name__ == "__main__":
    main()
