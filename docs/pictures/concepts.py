#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""concepts.py FOLDER: the four concepts, and which of the steps of a stage each is there for."""

import pathlib
import sys

import diagram
from diagram import LARGE, NORMAL, SMALL, WIDTH, Canvas

STEPS = [("bring", "parts of vectors"), ("measure", "Gram matrix G"), ("sum", "G over ranks"), ("weigh", "weights c"),
         ("mix", "weighted sum"), ("deliver", "on the way back")]
CONCEPT_OF = {"bring": "communicator", "measure": "space", "sum": "communicator", "weigh": "rule", "mix": "space",
              "deliver": "communicator"}
CARDS = [("rule", "rule", "what", ["turns the Gram matrix", "into weights"], ["Adasum, mean,", "AdaCons, …"]),
         ("space", "execution space", "where", ["measures and mixes", "on one device"],
          ["one thread, several,", "Kokkos, CUDA"]),
         ("communicator", "communicator", "among whom", ["carries vectors and", "sums between ranks"],
          ["MPI, NCCL, threads,", "PyTorch"]),
         ("schedule", "schedule", "in what order", ["lists the stages: who", "meets whom, over what"],
          ["halving, doubling,", "all to all"])]


def colour_of(canvas, concept):
    theme = canvas.theme
    return {"rule": theme.adasum, "space": theme.other, "communicator": theme.mean, "schedule": theme.steps}[concept]


def draw_step(canvas, x, y, width, height, name, size=LARGE):
    colour, core = colour_of(canvas, CONCEPT_OF[name]), name in ("measure", "weigh", "mix")
    canvas.box(x, y, width, height, edge=colour, fill=canvas.theme.shade(colour, 0.25 if core else 0.06),
               line=2 if core else 1.2)
    canvas.text(x + width / 2, y + height / 2, name, size, weight="bold" if core else "normal")


def draw(canvas: Canvas):
    schedule = colour_of(canvas, "schedule")
    canvas.box(4, 6, WIDTH - 8, 108, edge=schedule, line=2)
    canvas.text(16, 24, "One stage of a schedule", LARGE, weight="bold", colour=schedule, align="left")
    canvas.text(WIDTH - 16, 24, "the next stage continues with the mixed vectors", SMALL, colour=canvas.theme.muted,
                align="right")
    width, gap, y, height = 68, 18, 44, 40
    for i, (name, text) in enumerate(STEPS):
        x = 16 + i * (width + gap)
        draw_step(canvas, x, y, width, height, name)
        canvas.text(x + width / 2, y + height + 14, text, SMALL, colour=canvas.theme.muted)
        if i > 0:
            canvas.arrow((x - gap + 2, y + height / 2), (x - 2, y + height / 2), head=9)
    for i, card in enumerate(CARDS):
        draw_card(canvas, 4 + i * 132, *card)


def draw_card(canvas, x, concept, title, question, does, examples):
    colour, y = colour_of(canvas, concept), 130
    canvas.box(x, y, 126, 112, edge=colour, fill=canvas.theme.shade(colour, 0.06))
    canvas.text(x + 10, y + 18, title, LARGE, weight="bold", colour=colour, align="left")
    canvas.text(x + 10, y + 34, question, NORMAL, style="italic", align="left")
    canvas.lines(x + 10, y + 54, does, align="left")
    canvas.lines(x + 10, y + 84, examples, align="left", colour=canvas.theme.muted)


if __name__ == "__main__":
    diagram.save(pathlib.Path(sys.argv[1]) / "concepts", draw, WIDTH, 250)
