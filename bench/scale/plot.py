#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/scale/plot.py SCALE.json PICTURE: the best schedule against the fastest MPI_Allreduce, over size and ranks; PICTURE.svg
and PICTURE-dark.svg."""

import pathlib
import sys

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from results import Results, size_name

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

COLUMNS = {"messages": "messages only", "arithmetic": "with arithmetic"}
ROWS = {
    "powers of two": lambda ranks: ranks & (ranks - 1) == 0,
    "other numbers of ranks": lambda ranks: ranks & (ranks - 1) != 0,
}
COLOURS = ["adasum", "mean", "other", "sum", "steps", "extra"]
TICKS = [0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 2, 2.5, 3, 4, 6]


def draw_panel(axes, theme, results, scenario, ranks_list):
    axes.axhline(1, color=theme.ink, linewidth=1.2, zorder=1)
    for i, ranks in enumerate(ranks_list):
        sizes = results.sizes(scenario, ranks)
        axes.plot(sizes, [results.best(scenario, ranks, size)[1] for size in sizes], marker="o", markersize=4, zorder=3,
                  color=getattr(theme, COLOURS[i % len(COLOURS)]), linestyle="-" if i < len(COLOURS) else "--",
                  label=f"{ranks}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x", visible=False)


def draw(grid, theme, results):
    for (row, belongs), panels in zip(ROWS.items(), grid):
        for (scenario, title), axes in zip(COLUMNS.items(), panels):
            draw_panel(axes, theme, results, scenario, [ranks for ranks in results.ranks(scenario) if belongs(ranks)])
            axes.set_title(f"{row}, {title}", fontsize=10)
        panels[0].set_ylabel("time / fastest MPI_Allreduce")
        panels[1].legend(title="ranks", loc="upper right", ncols=3, columnspacing=1, handlelength=1.6)
    sizes = sorted({size for scenario in COLUMNS for _, size in results.both(scenario)})
    for axes in grid[1]:
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(sizes, [size_name(size) for size in sizes], rotation=30, ha="right", fontsize=9)
        axes.set_xlabel("bytes of a gradient")


def main(source, picture):
    results = Results(source)
    picture_style.save(picture, lambda _, grid, theme: draw(grid, theme, results), (7.4, 5.6), nrows=2, ncols=2, sharex=True,
                       sharey=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
