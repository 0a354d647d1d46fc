# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py PICTURE RUN...: what the ranks of each run (RUN.csv) hold of memory and of file descriptors, over time, as
PICTURE.svg and PICTURE-dark.svg."""
import csv
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

ROWS = {"heap_mb": "in use by malloc, MB", "resident_mb": "resident, MB", "descriptors": "file descriptors"}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def read(path):
    with open(path, newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def draw(figure, panels, theme, runs):
    for (name, rows), colour in zip(runs.items(), (theme.adasum, theme.mean)):
        for axes, column in zip(panels, ROWS):
            axes.plot([row["seconds"] / 60 for row in rows], [row[column] for row in rows], linewidth=0.9, color=colour,
                      label=f"{NAMES.get(name, name)}: {rows[-1]['reductions']:,.0f} reductions")
    for axes, text in zip(panels, ROWS.values()):
        axes.set_ylim(bottom=0)
        axes.set_ylabel(text)
        axes.grid(axis="x", visible=False)
    panels[0].legend(loc="lower right", ncols=2)
    panels[-1].set_xlabel("minutes; the most of any rank")
    figure.align_ylabels(panels)


def main():
    picture, *paths = sys.argv[1:]
    runs = {pathlib.Path(path).name: read(path + ".csv") for path in paths}
    picture_style.save(picture, lambda figure, panels, theme: draw(figure, panels, theme, runs), (7.2, 5.4), nrows=3,
                       sharex=True)


if __name__ == "__main__":
    main()
