# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in pages of the documentation."""

import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[2]


def examples_of(page):
    """Each with a name for messages."""
    blocks = re.findall(r"```python\n(.*?)```", (root / page).read_text(), re.DOTALL)
    return [(f"{page}, example {number + 1}", block) for number, block in enumerate(blocks)]
