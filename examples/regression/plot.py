#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py PICTURE.png FILE.csv...: prints the study's table (median loss over seeds, with the extremes) and draws the
losses over the updates. The files are what `regression` printed."""
import csv
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STYLES = {  # colours that colour-blind readers can tell apart; related rules share one
    "mean": ("mean", "#E69F00", "-"),
    "unit_mean": ("unit mean", "#000000", "-"),
    "adacons": ("AdaCons", "#CC79A7", "--"),
    "adacons_momentum": ("AdaCons, β = 0.99", "#CC79A7", "-"),
    "adasum": ("Adasum", "#0072B2", "-"),
    "adasum_linear": ("Adasum, linear order", "#0072B2", "--"),
    "min_norm": ("min-norm", "#009E73", "-"),
    "multi_krum": ("multi-Krum", "#D55E00", "-"),
    "imtl_g": ("IMTL-G", "#56B4E9", "-"),
    "aligned_mtl": ("Aligned-MTL", "#999999", "-"),
}
FLOOR = 1e-12  # relative to what a loss begins with, nothing but rounding errors of float


def read(paths):
    """{(workers, batch): {rule: {update: [loss of each seed]}}}"""
    study = {}
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                losses = study.setdefault((int(row["workers"]), int(row["batch"])), {})
                losses.setdefault(row["rule"], {}).setdefault(int(row["update"]), []).append(float(row["loss"]))
    return dict(sorted(study.items()))


def shown(loss):
    if loss < FLOOR:
        return f"< {FLOOR:.0e}"
    return f"{loss:.0e}" if loss < 0.01 else f"{loss:.2f}" if loss < 1 else f"{loss:.0f}"


def print_table(study):
    print("| rule | " + " | ".join(f"{workers} workers, batch {batch}" for workers, batch in study) + " |")
    print("|---" * (len(study) + 1) + "|")
    for rule, (label, *_) in STYLES.items():
        cells = []
        for losses in study.values():
            last = losses[rule][max(losses[rule])]
            median, least, most = (shown(f(last)) for f in (statistics.median, min, max))
            cells.append(median if least == most else f"{median} [{least}, {most}]")
        print(f"| {label} | " + " | ".join(cells) + " |")


def draw(study, path):
    figure, grid = plt.subplots(2, 2, figsize=(10, 7), sharex=True, sharey=True, layout="constrained")
    for axes, ((workers, batch), losses) in zip(grid.flat, study.items()):
        for rule, (label, colour, line) in STYLES.items():
            updates = sorted(losses[rule])
            axes.plot(updates, [max(FLOOR, statistics.median(losses[rule][u])) for u in updates], line, color=colour,
                      linewidth=1.8, label=label)
        axes.set_yscale("log")
        axes.set_title(f"{workers} workers, batch {batch}", fontsize=11, loc="left")
        axes.grid(color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("expected loss, median of seeds")
    for axes in grid[1]:
        axes.set_xlabel("updates")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=130, bbox_inches="tight")


def main():
    picture, *tables = sys.argv[1:]
    study = read(tables)
    print_table(study)
    draw(study, picture)


if __name__ == "__main__":
    main()
