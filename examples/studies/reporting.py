# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and pictures of studies."""

import pathlib
import statistics
import sys

from runs import tried

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402,F401  pictures are drawn by it

labels = {"mean": "mean", "sum": "sum", "adasum": "Adasum", "adasum of steps": "Adasum of steps", "adacons": "AdaCons",
          "mean of steps": "mean of steps", "adasum of rows": "Adasum, word by word"}
_diverged = 1e3  # a loss at which nothing is learned any more
_colours = {"mean": "mean", "sum": "sum", "adasum": "adasum", "adasum of steps": "steps", "adacons": "other",
            "mean of steps": "extra", "adasum of rows": "steps"}
_markers = {"mean": "s", "sum": "^", "adasum": "o", "adasum of steps": "D", "adacons": "v", "mean of steps": "P",
            "adasum of rows": "D"}


def line_style(method, theme):
    return dict(label=labels[method], color=getattr(theme, _colours[method]), marker=_markers[method])


def spread(values, digits):
    """The median, with the least and the largest where there are several."""
    values = list(values)
    shown = number(statistics.median(values), digits)
    return shown if len(values) == 1 else f"{shown} [{number(min(values), digits)}, {number(max(values), digits)}]"


def number(value, digits):
    return f"{value:.{digits}f}" if value < _diverged else "diverges"


def table(header, rows):
    """In Markdown."""
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in [header, ["---"] * len(header), *rows]]
    return "\n".join(lines) + "\n"


def draw_spread(axes, places, runs, **style):
    """A line through medians, with an area from the least to the largest, which has a gap where a run diverged. runs: a list of
    values for each place."""
    axes.fill_between(places, [min(run) for run in runs], [max(run) for run in runs], [max(run) < _diverged for run in runs],
                      color=style["color"], alpha=0.15, linewidth=0)
    axes.plot(places, [statistics.median(run) for run in runs], **style)


def draw_rates(axes, known, settings, value, theme):
    """What each rate gave that was tried for these settings, one of each method. value(run): a number."""
    for setting in settings:
        runs = tried(known, setting)
        axes.plot([run.rate for run in runs], [value(known[run]) for run in runs], **line_style(setting.method, theme))
    rates = sorted({run.rate for setting in settings for run in tried(known, setting)})
    axes.set_xscale("log", base=2)
    axes.set_xticks(rates[::2], [f"{rate:.2g}" for rate in rates[::2]])
    axes.minorticks_off()
    axes.set_xlabel("highest learning rate")


def errors_axis(axes, lowest):
    """For errors in per cent."""
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick >= lowest]
    axes.set_yscale("log")
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(lowest, 100)


def workers_axis(axes, workers):
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(w) for w in workers])
    axes.minorticks_off()
    axes.set_xlabel("workers")
