#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot_orthogonality.py PICTURE.png SUBJECT history-RULE-WORKERS.csv...: draws orthogonality over training."""
import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {8: "#56B4E9", 16: "#009E73", 32: "#0072B2", 64: "#CC79A7"}


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [int(row["images"]) for row in rows], [float(row["orthogonality"]) for row in rows]


def smooth(values, width):
    """Mean over a window of so many steps around each."""
    half = width // 2
    return [sum(part) / len(part) for i in range(len(values)) for part in [values[max(0, i - half) : i + half + 1]]]


def main():
    picture, subject, *paths = sys.argv[1:]
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for path in sorted(paths, key=lambda p: int(pathlib.Path(p).stem.split("-")[-1])):
        workers = int(pathlib.Path(path).stem.split("-")[-1])
        images, values = read(path)
        colour = COLOURS.get(workers, "0.3")
        axes.plot(images, values, color=colour, alpha=0.2, linewidth=0.8)
        axes.plot(images, smooth(values, max(1, len(values) // 15)), color=colour, linewidth=2.2, label=f"{workers} workers")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("images seen by all workers together")
    axes.set_ylabel("orthogonality  ‖result‖² / Σ‖gᵢ‖²")
    axes.set_title(f"Gradients become more orthogonal as training goes on ({subject})", fontsize=11, loc="left")
    axes.legend(frameon=False, loc="lower right")
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    main()
