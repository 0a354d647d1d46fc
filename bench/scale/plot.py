#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/scale/plot.py SCALE.json PICTURE.png: the best schedule against the fastest MPI_Allreduce, over size and ranks."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

from results import Results, size_name  # noqa: E402

COLUMNS = {"messages": "messages only", "arithmetic": "with arithmetic"}
ROWS = {
    "powers of two": lambda ranks: ranks & (ranks - 1) == 0,
    "other numbers of ranks": lambda ranks: ranks & (ranks - 1) != 0,
}
COLOURS = ["#56B4E9", "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#CC3311"]  # told apart by colour-blind readers
TICKS = [0.6, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 4, 6]


def draw_panel(axes, results, scenario, ranks_list):
    axes.axhline(1, color="0.25", linewidth=1.2, zorder=1)
    labels = []
    for ranks, colour in zip(ranks_list, COLOURS):
        sizes = results.sizes(scenario, ranks)
        ratios = [results.best(scenario, ranks, size)[1] for size in sizes]
        axes.plot(sizes, ratios, color=colour, linewidth=2, marker="o", markersize=4.5, zorder=3)
        labels.append([ratios[-1], f"{ranks}", colour, sizes[-1]])
    spread_labels(axes, labels)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="0.91")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def spread_labels(axes, labels, step=1.07):
    """Numbers of ranks at the curves' ends, moved apart where they would lie on each other."""
    labels.sort()
    heights = [label[0] for label in labels]
    for _ in range(200):
        for i in range(1, len(heights)):
            if heights[i] / heights[i - 1] < step:
                excess = (step / (heights[i] / heights[i - 1])) ** 0.5
                heights[i], heights[i - 1] = heights[i] * excess, heights[i - 1] / excess
    for (_, text, colour, size), height in zip(labels, heights):
        axes.annotate(text, (size, height), xytext=(9, 0), textcoords="offset points", va="center", color=colour,
                      fontweight="bold", fontsize=9.5, annotation_clip=False)


def main(source, picture):
    results = Results(source)
    figure, grid = plt.subplots(2, 2, figsize=(10, 7.6), sharex=True, sharey=True, layout="constrained")
    for (row, belongs), panels in zip(ROWS.items(), grid):
        for (scenario, title), axes in zip(COLUMNS.items(), panels):
            draw_panel(axes, results, scenario, [ranks for ranks in results.ranks(scenario) if belongs(ranks)])
            axes.set_title(f"{row}, {title}", fontsize=10.5, loc="left")
        panels[0].set_ylabel("time / fastest MPI_Allreduce")
    sizes = sorted({size for scenario in COLUMNS for _, size in results.both(scenario)})
    for axes in grid[1]:
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(sizes, [size_name(size) for size in sizes], rotation=30, ha="right", fontsize=9)
        axes.set_xlabel("bytes of a gradient")
    figure.suptitle("Adasum by its best schedule against a plain sum, simulated on a fat tree of 100 Gb/s; "
                    "each curve is a number of ranks", fontsize=11.5, x=0.01, ha="left")
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:])
