# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""page.py [--check]: writes docs/works_together.md from what the test programs have found (found.py). With --check, only says
whether the page is as it would be written, and fails if it is not."""

import difflib
import pathlib
import re
import sys
import textwrap

import found

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "works_together.md"
NUMBERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
CODE = ["adasum", "sum", "mean", "adacons", "pcgrad", "gradvac", "upgrad", "dualproj", "cagrad", "fairgrad", "automatic",
        "hierarchical", "float", "double", "nonfinite", "wire", "measure"]
IN_WORDS = {"start test wait": "`start` to `wait`", "beside other work": "a reduction beside other work"}


def reason(word):
    """A word of the findings for readers, who learn what the library says."""
    kind, text = word.split(": ", 1)
    if kind == "call":
        return f"an error: “… {text} …”"
    source = (ROOT / "tests/package/compile_fail" / f"{text}.cpp").read_text()  # a test of its own
    return f"does not compile: “{re.search(r'// expect(?: only)?: (.*)', source)[1]}”"


def names(some):
    """Names of C++ in the font of code, and what a person calls things as it is."""
    return ", ".join(IN_WORDS.get(name) or re.sub(rf"\b(?:\w+[._]\w+|{'|'.join(CODE)})\b", r"`\g<0>`", name) for name in some)


def all_of(some):
    """The same in a sentence."""
    return " and ".join(names(some).rsplit(", ", 1))


class Notes:
    """Of one table, in the order in which its cells mention them."""

    def __init__(self):
        self.all = []

    def mark(self, text):
        if text not in self.all:
            self.all.append(text)
        return NUMBERS[self.all.index(text) + 1]


def cell(words, notes):
    if words is None:
        return "–"
    reasons = [word for word in words if word != "right"]
    if "right" not in words:
        return "no" + "".join(notes.mark(reason(word)) for word in reasons)
    return "yes" + "".join(notes.mark("with some parameters: " + reason(word)) for word in reasons)


def rendered(table, most=6):
    """The table in Markdown. Rows that are alike are one, and so are columns; of many, a note has the names."""
    rows = sorted(table.alike(), key=lambda group: len(group[0]) > most)  # all others come last
    columns = sorted((together for together, _ in table.turned().alike()), key=lambda group: len(group) > most)
    if len(rows) == len(columns) == 1 and rows[0][1][columns[0][0]] == ["right"]:
        return textwrap.fill(f"Each of {all_of(rows[0][0])} works with each of {all_of(columns[0])}.", 128) + "\n"
    notes = Notes()

    def label(some, all_of_them):
        if len(some) <= most:
            return names(some)
        return ("every one" if len(some) == all_of_them else "all others") + notes.mark(names(some))

    count = sum(len(together) for together in columns)
    lines = ["| | " + " | ".join(label(together, count) for together in columns) + " |", "|---|" + "---|" * len(columns)]
    for together, cells in rows:
        words = [cell(cells.get(column[0]), notes) for column in columns]
        lines.append(f"| {label(together, len(table))} | " + " | ".join(words) + " |")
    lines.append("")
    lines += [textwrap.fill(f"* {NUMBERS[i]} {note}", 128, subsequent_indent="  ") for i, note in enumerate(notes.all, 1)]
    return "\n".join(lines).rstrip() + "\n"


def page():
    tables, counts = found.read_all()
    total = {}
    for of_program in counts.values():
        for what, number in of_program.items():
            total[what] = total.get(what, 0) + number
    template = (pathlib.Path(__file__).parent / "page.txt").read_text()
    text = re.sub(r"\{count: (.*?)\}", lambda match: f"{total[match[1]]:,}", template)
    text = re.sub(r"^The programs ran .*?\n\n", lambda match: textwrap.fill(match[0], 128) + "\n\n", text, flags=re.M | re.S)
    text = re.sub(r"\{table: (.*?)\}\n", lambda match: rendered(tables[match[1]]), text)
    return re.sub(r"\{table, turned: (.*?)\}\n", lambda match: rendered(tables[match[1]].turned()), text)


def main():
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        before = PAGE.read_text().splitlines() if PAGE.exists() else []
        print("\n".join(difflib.unified_diff(before, text.splitlines(), str(PAGE), "found", lineterm="")))
        sys.exit("docs/works_together.md is not what was found; scripts/works-together writes it anew")


if __name__ == "__main__":
    main()
