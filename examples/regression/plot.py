#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py PICTURE FILE.csv...: prints the study's table (median loss over seeds, with the extremes) and draws the losses over
the updates, as PICTURE.svg and PICTURE-dark.svg. The files are what `regression` printed."""
import csv
import pathlib
import statistics
import sys

from matplotlib.ticker import FixedLocator, FuncFormatter

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

STYLES = {  # related rules share a colour
    "mean": ("mean", "mean", "-"),
    "unit_mean": ("unit mean", "mean", "--"),
    "adacons": ("AdaCons", "other", "--"),
    "adacons_momentum": ("AdaCons, β = 0.99", "other", "-"),
    "adasum": ("Adasum", "adasum", "-"),
    "adasum_linear": ("Adasum, linear order", "adasum", "--"),
    "min_norm": ("min-norm", "steps", "-"),
    "multi_krum": ("multi-Krum", "ink", "--"),
    "imtl_g": ("IMTL-G", "sum", "-"),
    "aligned_mtl": ("Aligned-MTL", "extra", "-"),
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


def draw(grid, theme, study):
    for axes, ((workers, batch), losses) in zip(grid.flat, study.items()):
        for rule, (label, colour, line) in STYLES.items():
            updates = sorted(losses[rule])
            axes.plot(updates, [max(FLOOR, statistics.median(losses[rule][u])) for u in updates], line,
                      color=getattr(theme, colour), linewidth=1.6, label=label)
        axes.set_yscale("log")
        axes.set_ylim(FLOOR / 5, 1e4)
        axes.yaxis.set_major_locator(FixedLocator([1e3, 1, 1e-3, 1e-6, 1e-9, 1e-12]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{loss:g}".replace("e-0", "e-")))
        axes.set_title(f"{workers} workers, batch {batch}")
    for axes in grid[:2, 0]:
        axes.set_ylabel("expected loss, median of seeds")
    for axes in grid[0]:
        axes.tick_params(labelbottom=False)
    for axes in grid[1]:
        axes.set_xlabel("updates")
    for axes in grid[2]:
        axes.axis("off")
    # Below all four, in a row that is otherwise empty.
    grid[2, 0].legend(*grid[0, 0].get_legend_handles_labels(), loc="upper left", ncols=4).set_in_layout(False)


def main():
    picture, *tables = sys.argv[1:]
    study = read(tables)
    print_table(study)
    picture_style.save(picture, lambda _, grid, theme: draw(grid, theme, study), (7.4, 6.4), nrows=3, ncols=2, sharey="row",
                       gridspec_kw={"height_ratios": [1, 1, 0.34]})


if __name__ == "__main__":
    main()
