#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/plot.py RESULTS.json PICTURE: an allreduce's time over that of MPI_Allreduce, over the length; PICTURE.svg and
PICTURE-dark.svg. RESULTS.json is what scripts/bench writes."""

import json
import pathlib
import sys

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from report import si

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import picture_style  # noqa: E402

# The name of a row of the results, how it is called, its colour.
PLANS = [("messages", "messages", "steps"), ("automatic", "automatic", "adasum"), ("shared_memory", "in place", "other")]


def draw_case(axes, rows, theme):
    axes.axhline(1, color=theme.ink, linewidth=1.2)
    for name, label, colour in PLANS:
        ratios = {row["elements"]: row["ratio"] for row in rows if row["name"] == name}
        lengths, colour = sorted(ratios), getattr(theme, colour)
        axes.plot(lengths, [ratios[n]["median"] for n in lengths], marker="o", markersize=4, color=colour, label=label)
        known = [n for n in lengths if "q1" in ratios[n]]
        axes.fill_between(known, [ratios[n]["q1"] for n in known], [ratios[n]["q3"] for n in known], color=colour, alpha=0.2,
                          linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(lengths[::2]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda length, _: si(int(length))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("floats")
    axes.set_yscale("log", base=2)  # of ratios: twice as long is as far from 1 as half as long
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    axes.grid(axis="x", visible=False)


def main():
    results, picture = sys.argv[1:]
    rows = json.loads(pathlib.Path(results).read_text())["allreduce"]
    cases = list(dict.fromkeys((row["mpi"], row["ranks"]) for row in rows))

    def draw(_, panels, theme):
        for (mpi, ranks), axes in zip(cases, panels[0]):
            draw_case(axes, [row for row in rows if (row["mpi"], row["ranks"]) == (mpi, ranks)], theme)
            axes.set_title(f"{mpi}, {ranks} ranks")
        panels[0][0].set_ylabel("time / MPI_Allreduce of a sum")
        panels[0][-1].legend(loc="upper right")

    picture_style.save(picture, draw, (2.4 * len(cases) + 0.2, 3.1), ncols=len(cases), sharey=True, squeeze=False)


if __name__ == "__main__":
    main()
