# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one style of all pictures, for pages with a light and with a dark background."""

import dataclasses
import io
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colours of one background. Those of the rules can be told apart by colour-blind readers (Okabe and Ito)."""

    name: str
    ink: str
    """text and axes"""
    faint: str
    """grids"""
    muted: str
    """lines and texts of less weight"""
    adasum: str
    mean: str
    sum: str
    steps: str
    other: str
    extra: str

    def shade(self, colour, weight=0.15):
        """A colour for areas behind lines."""
        return matplotlib.colors.to_rgba(colour, weight)


light = Theme("light", ink="#1f2328", faint="#e4e7eb", muted="#6b7280", adasum="#0072b2", mean="#d98200", sum="#cc3311",
              steps="#8a4fa3", other="#00845f", extra="#5b6b7b")
dark = Theme("dark", ink="#e6e8eb", faint="#343a42", muted="#9aa3ad", adasum="#56b4e9", mean="#f0ad3c", sum="#ff7a5c",
             steps="#cc9be0", other="#3cc79b", extra="#a9b6c3")


def save(path, draw, size, **subplots):
    """Draws a picture twice: PATH.svg for light pages, PATH-dark.svg for dark ones, both without a background.

    draw(figure, axes, theme): draws into what plt.subplots(figsize=size, **subplots) has made."""
    path = pathlib.Path(path)
    for theme in (light, dark):
        with plt.rc_context(_settings(theme)):
            figure, axes = plt.subplots(figsize=size, layout="constrained", **subplots)
            draw(figure, axes, theme)
            text = io.StringIO()
            # Without the date, and with names that do not change: the same data give the same file.
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            plt.close(figure)
        name = path.with_suffix(".svg") if theme is light else path.with_name(f"{path.stem}-dark.svg")
        name.write_text(text.getvalue().replace(f"'{MEASURED}'", SHOWN))


# Lengths of texts are taken from a font that comes with matplotlib, so that a picture is the same wherever it is drawn. Texts
# stay texts, and are shown in the reader's own font, which is narrower than that, if anything.
MEASURED = "DejaVu Sans"
SHOWN = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def _settings(theme):
    return {
        "svg.hashsalt": "adasum", "svg.fonttype": "none", "font.family": MEASURED, "font.size": 10,
        "text.color": theme.ink, "axes.labelcolor": theme.ink, "xtick.color": theme.ink, "ytick.color": theme.ink,
        "axes.edgecolor": theme.muted, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.titleweight": "bold",
        "axes.grid": True, "grid.color": theme.faint, "axes.axisbelow": True, "axes.spines.top": False,
        "axes.spines.right": False, "lines.linewidth": 2, "lines.markersize": 6, "legend.frameon": False,
    }
