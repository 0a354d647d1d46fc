# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What drawn pictures are made of: boxes, arrows, texts, and gradients as rows of cells. Lengths are in points, y goes down."""

import pathlib
import sys

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

SMALL, NORMAL, LARGE = 9, 10, 11  # sizes of text; what is smaller cannot be read on a page
WIDTH = 530  # of a picture that takes the whole width of a page


def save(path, draw, width, height):
    """draw(canvas)"""

    def draw_on(figure, axes, theme):
        figure.set_layout_engine("none")
        axes.set_position([0, 0, 1, 1])
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.axis("off")
        draw(Canvas(axes, theme))

    picture_style.save(path, draw_on, (width / 72, height / 72))


class Canvas:
    def __init__(self, axes, theme):
        self.axes, self.theme = axes, theme

    def colour_of(self, gradient):
        """The same in all pictures: gradient 0 is blue, …"""
        t = self.theme
        return [t.adasum, t.mean, t.other, t.sum, t.steps, t.extra][gradient % 6]

    def text(self, x, y, text, size=NORMAL, colour=None, align="center", vertical="center_baseline", **more):
        self.axes.text(x, y, text, fontsize=size, color=colour or self.theme.ink, ha=align, va=vertical, **more)

    def lines(self, x, y, texts, size=SMALL, leading=12.5, **more):
        """Lines of text, the first of them at y."""
        for i, text in enumerate(texts):
            self.text(x, y + i * leading, text, size, **more)

    def box(self, x, y, width, height, edge=None, fill="none", radius=5, line=1.2, **more):
        self.axes.add_patch(FancyBboxPatch((x + radius, y + radius), width - 2 * radius, height - 2 * radius,
                                           boxstyle=f"round,pad={radius}", mutation_aspect=1, facecolor=fill,
                                           edgecolor=edge or self.theme.muted, linewidth=line,
                                           clip_on=False, **more))

    def arrow(self, start, end, colour=None, line=1.3, curve=0.0, head=9, **more):
        self.axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=head, shrinkA=0, shrinkB=0,
                                            color=colour or self.theme.muted, linewidth=line, clip_on=False,
                                            connectionstyle=f"arc3,rad={curve}", **more))

    def line(self, xs, ys, colour=None, line=1.3, **more):
        self.axes.plot(xs, ys, color=colour or self.theme.muted, linewidth=line, clip_on=False, **more)

    def cells(self, x, y, width, height, combined, faint=()):
        """A row of cells, combined[i] being the gradients that are combined in the i-th: a stripe for each. What nobody
        needs any more is faint."""
        each = width / len(combined)
        looks = [(sorted(gradients), i in faint) for i, gradients in enumerate(combined)]
        for first, count in runs(looks):
            gradients, is_faint = looks[first]
            if not gradients:
                self.frame(x + first * each, y, count, each, height, self.theme.shade(self.theme.muted, 0.35))
        for first, count in runs(looks):  # their edges lie above those of empty cells
            gradients, is_faint = looks[first]
            left, stripe = x + first * each, height / max(1, len(gradients))
            for i, gradient in enumerate(gradients):
                colour = self.colour_of(gradient)
                self.axes.add_patch(Rectangle((left, y + i * stripe), count * each, stripe, linewidth=0, clip_on=False,
                                              facecolor=self.theme.shade(colour, 0.3) if is_faint else colour))
            if gradients:
                self.frame(left, y, count, each, height, self.theme.faint if is_faint else self.theme.muted)

    def frame(self, x, y, count, width, height, colour):
        self.axes.add_patch(Rectangle((x, y), count * width, height, facecolor="none", linewidth=0.8, edgecolor=colour,
                                      clip_on=False))
        for i in range(1, count):
            self.line([x + i * width] * 2, [y, y + height], colour, line=0.8)


def runs(values):
    """(first, count) of each run of equal values."""
    first = 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[first]:
            yield first, i - first
            first = i
