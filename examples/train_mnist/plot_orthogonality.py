#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot_orthogonality.py PICTURE SUBJECT history-RULE-WORKERS.csv...: draws orthogonality over training, as PICTURE.svg and
PICTURE-dark.svg."""
import csv
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

COLOURS = {8: "extra", 16: "other", 32: "adasum", 64: "steps"}


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [int(row["images"]) for row in rows], [float(row["orthogonality"]) for row in rows]


def smooth(values, width):
    """Mean over a window of so many steps around each."""
    half = width // 2
    return [sum(part) / len(part) for i in range(len(values)) for part in [values[max(0, i - half) : i + half + 1]]]


def draw(axes, theme, runs, subject):
    for workers, (images, values) in runs:
        colour = getattr(theme, COLOURS.get(workers, "ink"))
        axes.plot(images, values, color=colour, alpha=0.25, linewidth=0.8)
        axes.plot(images, smooth(values, max(1, len(values) // 15)), color=colour, label=f"{workers} workers")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("images seen by all workers together")
    axes.set_ylabel("orthogonality  ‖result‖² / Σ‖gᵢ‖²")
    axes.set_title(f"Gradients become more orthogonal as training goes on ({subject})")
    axes.legend(loc="lower right")
    axes.grid(axis="x", visible=False)


def main():
    picture, subject, *paths = sys.argv[1:]
    runs = sorted((int(pathlib.Path(path).stem.split("-")[-1]), read(path)) for path in paths)
    picture_style.save(picture, lambda _, axes, theme: draw(axes, theme, runs, subject), (7.2, 4))


if __name__ == "__main__":
    main()
