#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""timeline.py TIMELINE FOLDER: the steps of one reduction of two ranks, as they were traced."""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402


def steps_of(events):
    """The rank, name, beginning and duration of each step."""
    steps, begun = [], {}
    for event in events:
        if event["ph"] == "B":
            begun[event["pid"]] = event
        elif event["ph"] == "E":
            first = begun.pop(event["pid"])
            steps.append((event["pid"], first["name"], first["ts"], event["ts"] - first["ts"]))
    return steps


def draw(steps, axes, theme):
    colours = {"wait": theme.faint, "bring": theme.steps, "measure": theme.mean, "combine": theme.adasum}
    for rank, name, start, duration in steps:
        axes.barh(rank, duration, left=start, height=0.6, color=colours.get(name, theme.other))
        if duration > 40:
            axes.text(start + duration / 2, rank, name, ha="center", va="center", fontsize=8,
                      color=theme.ink if name == "wait" else "white" if theme.name == "light" else "black")
    axes.set_yticks([0, 1], ["rank 0", "rank 1"])
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_xlabel("microseconds")


if __name__ == "__main__":
    traced = steps_of(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    picture_style.save(pathlib.Path(sys.argv[2]) / "timeline", lambda _, axes, theme: draw(traced, axes, theme), (7.4, 1.7))
