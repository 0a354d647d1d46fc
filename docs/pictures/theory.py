#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""theory.py FOLDER: the length of sum, mean and Adasum against the angle between two gradients, and against the gradients' noise.
The formulas are those of docs/theory.md; tests/python/test_theory.py compares them with the library."""

import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import picture_style  # noqa: E402

ANGLES = range(0, 181, 3)
NOISES = [10 ** (i / 10 - 1) for i in range(31)]  # 0.1 to 100


def of_angle(angle):
    """Two gradients of length 1: the length of their mean, and what Adasum multiplies it by."""
    return math.cos(math.radians(angle / 2)), 2 - math.cos(math.radians(angle))


def of_noise(noise, levels):
    """The part that 2 ** levels gradients have in common, of length 1, in Adasum of them. It becomes longer level by level."""
    common, noise_squared = 1.0, noise ** 2
    for _ in range(levels):
        factor = 2 - common ** 2 / (common ** 2 + noise_squared)
        common, noise_squared = factor * common, factor ** 2 / 2 * noise_squared
    return common


def draw_angles(axes, theme):
    means, factors = zip(*map(of_angle, ANGLES))
    axes.plot(ANGLES, [2 * mean for mean in means], color=theme.sum)
    axes.plot(ANGLES, means, color=theme.mean)
    axes.plot(ANGLES, [factor * mean for factor, mean in zip(factors, means)], color=theme.adasum, linewidth=2.6)
    for x, y, name in (40, 1.98, "sum"), (8, 1.3, "Adasum"), (108, 0.66, "mean"):
        axes.text(x, y, name, color=getattr(theme, name.lower()), weight="bold")
    for angle in (0, 90):
        mean, factor = of_angle(angle)
        axes.plot([angle], [factor * mean], "o", color=theme.adasum, clip_on=False)
    axes.text(95, 1.48, "orthogonal: the sum", color=theme.muted, fontsize=9)
    axes.text(4, 0.7, "parallel: the mean", color=theme.muted, fontsize=9)
    axes.set_xlim(0, 180)
    axes.set_ylim(0, 2.2)
    axes.set_yticks([0, 0.5, 1, 1.5, 2], ["0", "½", "1", "1½", "2"])
    axes.set_xticks(range(0, 181, 45), [f"{angle}°" for angle in range(0, 181, 45)])
    axes.set_title("Two gradients of length 1")
    axes.set_xlabel("angle between them")
    axes.set_ylabel("length of the result")


def draw_noise(axes, theme):
    for levels in (1, 3, 5):
        count = 2 ** levels
        axes.axhline(count, color=theme.sum, linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(NOISES, [of_noise(noise, levels) for noise in NOISES], color=theme.adasum, linewidth=2.6)
        axes.text(0.11, count * 1.06, f"sum of {count}", color=theme.sum, fontsize=9)
    axes.axhline(1, color=theme.mean)
    axes.text(18, 0.86, "mean", color=theme.mean, weight="bold", va="top")
    axes.text(3.8, 4.4, "Adasum", color=theme.adasum, weight="bold")
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.set_xlim(0.1, 100)
    axes.set_ylim(0.62, 46)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.minorticks_off()
    axes.set_title("2, 8 and 32 gradients with noise")
    axes.set_xlabel("noise of each, beside a part in common of 1")
    axes.set_ylabel("length of the part in common")


def draw(_, axes, theme):
    draw_angles(axes[0], theme)
    draw_noise(axes[1], theme)


if __name__ == "__main__":
    picture_style.save(pathlib.Path(sys.argv[1]) / "theory", draw, (7.4, 3.4), ncols=2)
