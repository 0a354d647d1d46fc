#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""walk.py FOLDER: one gradient on its way through adasum_allreduce, that of rank 1 of 4 ranks by halving; drawn from
data/stages.json."""

import pathlib
import sys

import diagram
from concepts import draw_step
from diagram import LARGE, NORMAL, SMALL, WIDTH, Canvas
from schedules import STAGES, moments

SCHEDULE, RANK = "recursive_halving", 1
DOWN, BACK = 4, 398  # x of the way down the stages, and of the way back
BAR, BAR_HEIGHT = 80, 20
STAGE_HEIGHT, BETWEEN, FIRST = 74, 24, 126


def draw(canvas: Canvas):
    stages, seen = STAGES[SCHEDULE]["ranks"][RANK], moments(SCHEDULE)
    theme = canvas.theme
    canvas.box(DOWN, 6, 192, 60, edge=theme.ink)
    canvas.text(DOWN + 10, 25, "adasum_allreduce(…)", NORMAL, align="left", family="monospace", weight="bold")
    canvas.text(DOWN + 10, 48, "reads and checks its arguments", SMALL, align="left")
    canvas.arrow((DOWN + 172, 68), (DOWN + 172, FIRST - 40))
    canvas.arrow((DOWN + 194, 36), (DOWN + 224, 36))
    canvas.box(DOWN + 226, 6, WIDTH - 8 - 226, 60, edge=theme.steps, fill=theme.shade(theme.steps, 0.06))
    canvas.text(DOWN + 236, 22, "plan", LARGE, theme.steps, weight="bold", align="left")
    canvas.lines(DOWN + 236, 38, ["asks the schedule for this rank's stages, and decides",
                                  "for each: by messages, or in memory that ranks share"], align="left")
    y = FIRST - 28
    canvas.text(DOWN + 12, y, f"gradient of rank {RANK} of {len(seen[0].combined)}", NORMAL, align="left")
    canvas.cells(DOWN + 152, y - BAR_HEIGHT / 2, BAR, BAR_HEIGHT, seen[0].combined[RANK])
    canvas.arrow((DOWN + 192, y + 12), (DOWN + 192, FIRST - 2))
    for i, stage in enumerate(stages):
        draw_stage(canvas, i, stage, seen[1 + i].combined[RANK])
        draw_delivery(canvas, i, stage, seen[-1 - i].combined[RANK])
    last = stage_top(len(stages) - 1) + STAGE_HEIGHT / 2
    canvas.arrow((374, last), (BACK - 2, last))
    canvas.arrow((BACK + 64, FIRST - 2), (BACK + 64, y + 12))
    canvas.text(BACK + 64, y, "result and report", NORMAL, weight="bold")


def stage_top(i):
    return FIRST + i * (STAGE_HEIGHT + BETWEEN)


def other(stage):
    return " and ".join(f"rank {member}" for member in stage["members"] if member != RANK)


def draw_stage(canvas, i, stage, after):
    top, theme = stage_top(i), canvas.theme
    canvas.box(DOWN, top, 370, STAGE_HEIGHT, edge=theme.faint, fill=theme.shade(theme.extra, 0.1))
    canvas.text(DOWN + 12, top + 15, f"stage {i + 1}", NORMAL, weight="bold", align="left")
    text = f"with {other(stage)}; inner products are added over {len(stage['sum_over'])} ranks"
    canvas.text(DOWN + 62, top + 15, text, SMALL, align="left")
    for k, name in enumerate(["bring", "measure", "sum", "weigh", "mix"]):
        x = DOWN + 10 + k * 58
        draw_step(canvas, x, top + 30, 48, 32, name, SMALL)
        if k > 0:
            canvas.arrow((x - 9, top + 46), (x - 1, top + 46), head=6)
    canvas.cells(DOWN + 306, top + 36, BAR * 0.7, BAR_HEIGHT, after)
    if i > 0:
        canvas.arrow((DOWN + 192, top - BETWEEN + 2), (DOWN + 192, top - 2))


def draw_delivery(canvas, i, stage, after):
    top, theme = stage_top(i), canvas.theme
    canvas.box(BACK, top, 128, STAGE_HEIGHT, edge=theme.faint, fill=theme.shade(theme.extra, 0.1))
    canvas.text(BACK + 64, top + 15, f"with {other(stage)}", SMALL)
    draw_step(canvas, BACK + 8, top + 30, 50, 32, "deliver", SMALL)
    canvas.cells(BACK + 65, top + 36, BAR * 0.7, BAR_HEIGHT, after)
    if i > 0:
        canvas.arrow((BACK + 64, top - 2), (BACK + 64, top - BETWEEN + 2))


if __name__ == "__main__":
    diagram.save(pathlib.Path(sys.argv[1]) / "walk", draw, WIDTH, stage_top(2) - BETWEEN + 8)
