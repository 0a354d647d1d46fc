# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is no word of English, and is not looked up: parts of formulas, and names with letters that are not ASCII."""

import enchant.tokenize


class Formulas(enchant.tokenize.Filter):
    def _skip(self, word):
        return not word.isascii()
