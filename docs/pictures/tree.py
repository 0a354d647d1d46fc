#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tree.py FOLDER: along which tree gradients are combined, drawn from data/stages.json."""

import dataclasses
import json
import pathlib
import sys

import diagram
from diagram import LARGE, NORMAL, SMALL, WIDTH, Canvas

TREES = json.loads((pathlib.Path(__file__).parent / "data" / "stages.json").read_text())["trees"]


@dataclasses.dataclass(frozen=True)
class Tree:
    count: int
    left: float
    top: float
    title: str
    text: str
    early: frozenset = frozenset()  # (first, last) of each pair that is combined first, so that a power of two is left


PICTURES = [
    Tree(8, 20, 0, "8 gradients", "a perfect tree, as for every power of two"),
    Tree(5, 330, 0, "5 gradients", "first one pair, so that 4 are left", frozenset({(0, 2)})),
    Tree(9, 20, 160, "9 = 3 · 3 gradients", "a level for each factor 3", frozenset({(0, 2), (3, 5), (6, 8), (0, 6)})),
    Tree(6, 330, 160, "6 = 2 · 3 gradients", "a level of 2, then one of 3", frozenset({(0, 4)})),
]
EACH, LEVEL, NODE = 29, 25, 18  # from gradient to gradient, from level to level, the side of a gradient


def draw(canvas: Canvas):
    for tree in PICTURES:
        canvas.text(tree.left - 10, tree.top + 14, tree.title, LARGE, weight="bold", align="left")
        canvas.text(tree.left - 10, tree.top + 29, tree.text, SMALL, align="left", colour=canvas.theme.muted)
        draw_tree(canvas, tree)
    key = 350
    for x, colour, text in [(20, canvas.theme.adasum, "combines two"),
                            (130, canvas.theme.mean, "combines a pair first, so that a power of two is left at this level")]:
        draw_node(canvas, x, key, colour)
        canvas.text(x + 12, key, text, SMALL, align="left")


def draw_node(canvas, x, y, colour):
    canvas.axes.plot([x], [y], "o", color=colour, markersize=10, clip_on=False)


def draw_tree(canvas, tree):
    merges, top = TREES[str(tree.count)], tree.top + 54
    assert tree.early <= {(first, last) for first, _, last in merges}
    places = {(i, i + 1): (tree.left + i * EACH, 0) for i in range(tree.count)}  # of nodes, by their gradients: x, level
    for first, middle, last in merges:
        two = places[first, middle], places[middle, last]
        x, level = sum(x for x, _ in two) / 2, max(level for _, level in two) + 1
        for from_x, from_level in two:
            bend = top + level * LEVEL - 12
            canvas.line([from_x, from_x, x, x], [top + from_level * LEVEL, bend, bend, top + level * LEVEL], zorder=0.5)
        places[first, last] = x, level
        draw_node(canvas, x, top + level * LEVEL, canvas.theme.mean if (first, last) in tree.early else canvas.theme.adasum)
    for i in range(tree.count):
        x = tree.left + i * EACH
        canvas.box(x - NODE / 2, top - NODE / 2, NODE, NODE, radius=3, fill=canvas.theme.faint, edge=canvas.theme.muted, line=1)
        canvas.text(x, top, str(i), SMALL)
    x, level = places[0, tree.count]
    canvas.text(x + 12, top + level * LEVEL, "result", NORMAL, align="left")


if __name__ == "__main__":
    diagram.save(pathlib.Path(sys.argv[1]) / "tree", draw, WIDTH, 370)
