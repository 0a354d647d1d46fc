#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot_accuracy.py ACCURACY.csv ACCURACY.png SUBJECT: prints the table accuracy × rule × workers, and draws it."""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STYLES = {  # colours that colour-blind readers can tell apart
    "adasum": dict(label="Adasum", color="#0072B2", marker="o"),
    "mean": dict(label="mean", color="#E69F00", marker="s"),
    "sum": dict(label="sum", color="#CC3311", marker="^"),
}


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


def draw(table, workers, path, subject):
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    sequential = table["adasum"][1]
    axes.axhline(sequential, color="0.35", linestyle="--", linewidth=1.2)
    axes.annotate(f"sequential {sequential:.3f}", (workers[0], sequential), xytext=(0, 5), textcoords="offset points",
                  color="0.35", fontsize=9)
    for rule, accuracy in table.items():
        values = [accuracy[w] for w in workers]
        axes.plot(workers, values, linewidth=2.2, markersize=7, clip_on=False, zorder=3, **STYLES[rule])
        axes.annotate(f"{STYLES[rule]['label']} {values[-1]:.3f}", (workers[-1], values[-1]), xytext=(10, 0),
                      textcoords="offset points", va="center", color=STYLES[rule]["color"], fontweight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(w) for w in workers])
    axes.minorticks_off()
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("workers, each with a batch of 8")
    axes.set_ylabel("accuracy on held-out images")
    axes.set_title(f"A small CNN on {subject}, 2 epochs, learning rate not retuned", fontsize=11, loc="left")
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)


def main():
    table_path, picture_path, subject = sys.argv[1:]
    table = read(table_path)
    workers = sorted(table["adasum"])
    print_table(table, workers)
    draw(table, workers, picture_path, subject)


if __name__ == "__main__":
    main()
