# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in pages of the documentation."""

import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[2]


def examples_of(page):
    """Each with a name for messages."""
    blocks = re.findall(r"```python\n(.*?)```", (root / page).read_text(), re.DOTALL)
    return [(f"{page}, example {number + 1}", block) for number, block in enumerate(blocks)]


def run_example(page, heading, number=0, **names):
    """Runs one of the examples under a heading with these names, and returns the names that there are then."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", (root / page).read_text(), re.DOTALL | re.MULTILINE)
    example = re.findall(r"```python\n(.*?)```", section[1], re.DOTALL)[number]
    exec(compile(example, f"{page}, {heading}, example {number + 1}", "exec"), names)
    return names
