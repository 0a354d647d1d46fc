#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shared_memory.py FOLDER: one stage in memory that ranks share, in place; drawn from data/stages.json."""

import pathlib
import sys

import diagram
from diagram import LARGE, NORMAL, SMALL, WIDTH, Canvas
from schedules import STAGES, moments

NAME = "shared_memory"
BAR, BAR_HEIGHT, ROW = 136, 20, 27
TOP, LEFT, RIGHT = 62, 98, 346  # of the gradients before and after
BARRIERS = [(78, ["all gradients", "are there"]), (253, ["inner products", "are added"]), (500, ["all slices", "are written"])]


def draw(canvas: Canvas):
    before, after, back = moments(NAME, in_place=True)
    ranks = [stages[0] for stages in STAGES[NAME]["ranks"]]
    bottom = TOP + len(ranks) * ROW - (ROW - BAR_HEIGHT)
    canvas.box(10, 30, WIDTH - 20, bottom + 8, edge=canvas.theme.faint, fill=canvas.theme.shade(canvas.theme.extra, 0.1))
    canvas.text(10, 14, "Memory that four ranks share", LARGE, weight="bold", align="left")
    for x, texts in BARRIERS:
        canvas.line([x, x], [40, bottom + 24], canvas.theme.ink, line=3, solid_capstyle="round")
        canvas.text(x, bottom + 54, "barrier", SMALL, weight="bold")
        canvas.lines(x, bottom + 67, texts, colour=canvas.theme.muted)
    for rank in range(len(ranks)):
        y = TOP + rank * ROW
        canvas.text(BARRIERS[0][0] - 12, y + BAR_HEIGHT / 2, f"gradient {rank}", SMALL, align="right")
        canvas.cells(LEFT, y, BAR, BAR_HEIGHT, before.combined[rank])
        canvas.cells(RIGHT, y, BAR, BAR_HEIGHT, back.combined[rank])
    for x, title in (LEFT, "measure"), (RIGHT, "mix"):
        canvas.text(x + BAR / 2, 48, title, NORMAL, weight="bold")
        draw_columns(canvas, x, bottom, ranks)
    draw_weighing(canvas, len(ranks))
    assert all(after.combined[rank][cell] == back.combined[rank][cell]  # what a rank combines is what all get
               for rank, stage in enumerate(ranks) for cell in range(*stage["part"]))


def draw_columns(canvas, x, bottom, ranks):
    """Each rank works on its slice of all gradients."""
    each = BAR / STAGES[NAME]["cells"]
    for rank, stage in enumerate(ranks):
        first, last = stage["part"]
        canvas.box(x + first * each + 1, TOP - 4, (last - first) * each - 2, bottom - TOP + 8, edge=canvas.theme.ink, line=1.5)
        canvas.text(x + (first + last) / 2 * each, bottom + 15, f"rank {rank}", SMALL)


def draw_weighing(canvas, count):
    left, top, size = 272, TOP + 22, 13
    canvas.text(left + 2 * size, 48, "weigh", NORMAL, weight="bold")
    for row in range(count):
        for column in range(row + 1):
            canvas.frame(left + column * size, top + row * size, 1, size, size, canvas.theme.muted)
    canvas.text(left + 2 * size, TOP + 8, "Gram matrix", SMALL)
    canvas.lines(left + 2 * size, top + 4 * size + 14, ["every rank", "computes the", "same weights"],
                 colour=canvas.theme.muted)


if __name__ == "__main__":
    diagram.save(pathlib.Path(sys.argv[1]) / NAME, draw, WIDTH, 262)
