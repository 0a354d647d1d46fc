#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""two_vectors.py FOLDER: sum, mean and Adasum of two vectors that are orthogonal, in between, and parallel."""

import math
import pathlib
import sys

import diagram
from diagram import LARGE, NORMAL, SMALL, WIDTH, Canvas

A, LENGTH_OF_B = (1.0, 0.0), 0.7
SCALE = 104  # points of a length of 1


def adasum(a, b):
    ab = dot(a, b)
    return mix(1 - ab / (2 * dot(a, a)), a, 1 - ab / (2 * dot(b, b)), b)


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1]


def mix(weight_a, a, weight_b, b):
    return tuple(weight_a * x + weight_b * y for x, y in zip(a, b))


def draw(canvas: Canvas):
    draw_angle(canvas, 90, 14, "orthogonal", ["Adasum is the sum"])
    draw_angle(canvas, 50, 172, "in between", ["Adasum is between mean and sum,", "and leans to the longer vector"])
    draw_parallel(canvas, 384)


def draw_title(canvas, left, title, texts):
    canvas.text(left, 14, title, LARGE, weight="bold", align="left")
    canvas.lines(left, 30, texts, colour=canvas.theme.muted, align="left")


def draw_vector(canvas, start, end, colour, beside=0.0):
    """@param beside  by how much it is moved to its right, where it would lie on another"""
    length = math.dist(start, end)
    dx, dy = (end[0] - start[0]) / length * beside, (end[1] - start[1]) / length * beside
    canvas.arrow((start[0] - dy, start[1] + dx), (end[0] - dy, end[1] + dx), colour, line=2.2, head=13)


def draw_angle(canvas, angle, left, title, texts):
    draw_title(canvas, left, title, texts)
    b = tuple(LENGTH_OF_B * f(math.radians(angle)) for f in (math.cos, math.sin))
    theme, total, middle, combined = canvas.theme, mix(1, A, 1, b), mix(0.5, A, 0.5, b), adasum(A, b)
    is_sum = math.dist(total, combined) < 1e-9

    def at(vector, right=0, down=0):
        return left + 12 + SCALE * vector[0] + right, 150 - SCALE * vector[1] + down

    for side in A, b:
        canvas.line(*zip(at(side), at(total)), theme.muted, line=0.8, linestyle=(0, (3, 3)))
    for name, vector, right, down in ("a", A, -6, 13), ("b", b, -15 if b[0] > 0.01 else -11, 2):
        draw_vector(canvas, at((0, 0)), at(vector), theme.ink)
        canvas.text(*at(vector, right, down), name, NORMAL, style="italic", weight="bold")
    draw_vector(canvas, at((0, 0)), at(total), theme.sum, -2)
    draw_vector(canvas, at((0, 0)), at(combined), theme.adasum, 2)
    draw_vector(canvas, at((0, 0)), at(middle), theme.mean, 6 if is_sum else 2)
    names = [("sum", total, theme.sum, (-12, -10) if is_sum else (0, -10)),
             ("Adasum", combined, theme.adasum, (27, 7) if is_sum else (-23, 18)),
             ("mean", middle, theme.mean, (22, 8) if is_sum else (-18, -13))]
    for name, vector, colour, beside in names:
        canvas.text(*at(vector, *beside), name, SMALL, colour, weight="bold")


def draw_parallel(canvas, left):
    draw_title(canvas, left, "parallel", ["Adasum is the mean"])
    theme, b = canvas.theme, (LENGTH_OF_B, 0.0)
    middle, combined = mix(0.5, A, 0.5, b), adasum(A, b)
    assert math.dist(combined, middle) < 1e-9
    rows = [("a", A, theme.ink), ("b", b, theme.ink), ("sum", mix(1, A, 1, b), theme.sum), ("mean", middle, theme.mean),
            ("Adasum", combined, theme.adasum)]
    for i, (name, vector, colour) in enumerate(rows):
        y, end = 64 + 23 * i, left + 0.6 * SCALE * vector[0]
        draw_vector(canvas, (left, y), (end, y), colour)
        canvas.text(end + 8, y, name, SMALL, colour, align="left", weight="bold",
                    style="italic" if name in "ab" else "normal")


if __name__ == "__main__":
    diagram.save(pathlib.Path(sys.argv[1]) / "two_vectors", draw, WIDTH, 174)
