#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot_accuracy.py ACCURACY.csv PICTURE SUBJECT: prints the table accuracy × rule × workers, and draws it, as PICTURE.svg and
PICTURE-dark.svg."""
import csv
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

LABELS, MARKERS = {"adasum": "Adasum", "mean": "mean", "sum": "sum"}, {"adasum": "o", "mean": "s", "sum": "^"}


def read(path):
    """{rule: {workers: accuracy}}"""
    table = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            table.setdefault(row["rule"], {})[int(row["workers"])] = float(row["accuracy"])
    return table


def print_table(table, workers):
    print("accuracy  " + "".join(f"{w:>9}" for w in workers) + "  workers (1 = sequential)")
    for rule, accuracy in table.items():
        print(f"{rule:<10}" + "".join(f"{accuracy[w]:>9.4f}" for w in workers))


def draw(axes, theme, table, workers, subject):
    sequential = table["adasum"][1]
    axes.plot([workers[0], workers[-1]], [sequential] * 2, color=theme.muted, linestyle="--", linewidth=1.2)
    axes.annotate(f"one worker {sequential:.3f}", (workers[-1], sequential), xytext=(10, 5), textcoords="offset points",
                  va="center", color=theme.muted)
    for rule, accuracy in table.items():
        values, colour = [accuracy[w] for w in workers], getattr(theme, rule)
        axes.plot(workers, values, color=colour, marker=MARKERS[rule], markersize=7, clip_on=False, zorder=3)
        axes.annotate(f"{LABELS[rule]} {values[-1]:.3f}", (workers[-1], values[-1]), xytext=(10, 0),
                      textcoords="offset points", va="center", color=colour, fontweight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(w) for w in workers])
    axes.minorticks_off()
    axes.set_xlim(right=workers[-1] * 1.04)  # no grid behind the names
    axes.set_ylim(0, 1.1)
    axes.set_xlabel("workers, each with a batch of 8")
    axes.set_ylabel("accuracy on held-out images")
    axes.set_title(f"A small CNN on {subject}, 2 epochs, learning rate not retuned")
    axes.grid(axis="x", visible=False)


def main():
    table_path, picture, subject = sys.argv[1:]
    table = read(table_path)
    workers = sorted(table["adasum"])
    print_table(table, workers)
    picture_style.save(picture, lambda _, axes, theme: draw(axes, theme, table, workers, subject), (7.2, 4))


if __name__ == "__main__":
    main()
