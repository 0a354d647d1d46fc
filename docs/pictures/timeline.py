#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""timeline.py TIMELINE FOLDER: the steps of one reduction of two ranks, as they were traced."""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402


def draw(steps, axes, theme):
    colours = {"wait": theme.faint, "bring": theme.steps, "measure": theme.mean, "combine": theme.adasum}
    for step in sorted(steps, key=lambda step: step["depth"]):  # waiting is within the step that waits
        axes.barh(step["rank"], step["duration"], left=step["start"], height=0.6, color=colours.get(step["step"], theme.other))
        holds = [inner for inner in steps if inner["depth"] > step["depth"] and inner["rank"] == step["rank"]
                 and 0 <= inner["start"] - step["start"] < step["duration"]]
        if step["duration"] > 40 and not holds:
            axes.text(step["start"] + step["duration"] / 2, step["rank"], step["step"], ha="center", va="center", fontsize=8,
                      color=theme.ink if step["step"] == "wait" else "white" if theme.name == "light" else "black")
    axes.set_yticks([0, 1], ["rank 0", "rank 1"])
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_xlabel("microseconds")


if __name__ == "__main__":
    traced = json.loads(pathlib.Path(sys.argv[1]).read_text())
    picture_style.save(pathlib.Path(sys.argv[2]) / "timeline", lambda _, axes, theme: draw(traced, axes, theme), (7.4, 1.7))
