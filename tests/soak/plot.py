# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py PICTURE RUN...: what the ranks of each run (RUN.csv) hold of memory and of file descriptors, over time."""
import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

picture, runs = sys.argv[1], sys.argv[2:]
figure, axes = plt.subplots(3, 1, figsize=(7, 6), sharex=True)
for run in runs:
    with open(run + ".csv") as file:
        rows = list(csv.DictReader(file))
    minutes = [float(row["seconds"]) / 60 for row in rows]
    reductions = float(rows[-1]["reductions"])
    for axis, name, text in zip(axes, ("heap_mb", "resident_mb", "descriptors"),
                                ("in use by malloc, MB", "resident, MB", "file descriptors")):
        axis.plot(minutes, [float(row[name]) for row in rows], linewidth=0.8,
                  label=f"{pathlib.Path(run).name}, {reductions:,.0f} reductions")
        axis.set_ylabel(text)
for axis in axes:
    axis.set_ylim(bottom=0)
axes[0].legend(frameon=False)
axes[2].set_xlabel("minutes; the most of any rank")
figure.tight_layout()
figure.savefig(picture, dpi=150)
