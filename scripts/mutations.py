# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of one line of a header, for scripts/mutate."""
import collections
import itertools
import random
import re

# What is found in a line, and what it is replaced by. The formatter sets spaces around operators, not within templates.
operators = {"<": ["<=", ">="], ">": [">=", "<="], "<=": ["<", ">"], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"],
             "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "&": ["|"], "|": ["&"], "^": ["|"],
             "<<": [">>"], ">>": ["<<"], "+=": ["-=", "="], "-=": ["+=", "="], "*=": ["/=", "="], "/=": ["*="],
             "|=": ["&=", "="], "&=": ["|=", "="]}
words = {"true": ["false"], "false": ["true"], "std::max": ["std::min"], "std::min": ["std::max"], "continue": ["break"],
         "break": ["continue"], "front": ["back"], "back": ["front"], "any_of": ["all_of"], "all_of": ["any_of"],
         "none_of": ["any_of"], "lower_bound": ["upper_bound"], "upper_bound": ["lower_bound"], "lowest": ["max"]}
patterns = [
    *((rf"(?<= ){re.escape(old)}(?= |$)", new) for old, replaced in operators.items() for new in replaced),
    *((rf"(?<!\w){old}(?!\w)", new) for old, replaced in words.items() for new in replaced),
    (r"(?<=\.)first\b", "second"), (r"(?<=\.)second\b", "first"), (r"\+\+", "--"), (r"(?<!-)--(?!-)", "++"),
    (r"(?<=[ (])!(?=[\w(:*])", ""), (r"(?<=[ (])-(?=[\w(])", ""),
    (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "0"), (r"(?<![\w.])1(?![\w.])", "2"),
    (r"(?<![\w.])(?!0x)(\d*[2-9]|\d{2,})(?![\w.])", r"(\1 - 1)"), (r"(?<![\w.])(\d*[2-9]|\d{2,})(?![\w.])", r"(\1 + 1)"),
    (r"(?<![\w.])(\d+\.\d*)(?![\w.])", r"(\1 + 1)"),
    (r"\((\w+), (\w+)\)", r"(\2, \1)"),
    (r"(?<=return )[^;{}]+(?=;$)", "{}"), (r"(?<=return )([^;{}]+)(?=;$)", r"!(\1)"),
]
statement = re.compile(r"\s*(?!ADASUM)[\w:(*+-].*(\(| [-+*/|&]?= |\+\+|--)(?!.* \{$)|\s*throw ")
other_statement = re.compile(r"\s*((return|else|for|if|while|do|switch|case|default|try|break|continue)\b"
                             r"|(public|private|protected):|: |\w+\(.*\)[,{])")
declaration = re.compile(r"\s*(?!throw|delete)((const|auto|static|[\w:]+(<.*>)?)[*&]* )+[*&]?\w+(\[.*\])?( =|;|\{|\(|,)")


def changes_of(lines):
    """@return (number of a line, its new text) of every change that may mean something"""
    left_out = lines_left_out(lines)
    for number, line in enumerate(lines, 1):
        if number in left_out:
            continue
        code = re.sub(r'//.*|"(\\.|[^"\\]){4,}".*|(?<=\bthrow ).*', "", line).rstrip()  # without messages
        made = {line[:found.start()] + found.expand(new) + line[found.end():]
                for old, new in patterns for found in re.finditer(old, code)}
        for found in re.finditer(r"\b(if|while) (constexpr )?\(", code):
            end = end_of_parentheses(code, found.end())
            if end:
                made.update(line[:found.end()] + value + line[end:] for value in ("true", "false"))
        # A statement left out, which may go on in the next lines
        begins = re.search(r"[;{}:)]$|^$", lines[number - 2].split("//")[0].rstrip())
        if begins and statement.match(code) and not declaration.match(code) and not other_statement.match(code):
            made.add(re.sub(r"\S", r"if (false) \g<0>", line, count=1))
        yield from ((number, text) for text in sorted(made) if text.strip() != line.strip())


def end_of_parentheses(code, start):
    """@return where those end that begin before `start`; None if not in this line"""
    depth = 1
    for place in range(start, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return place
    return None


def lines_left_out(lines):
    """Numbers, from 1, of lines that are no code, or whose change nothing that runs could notice"""
    left_out, ends, concept, depth = set(), None, False, 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if concept or text.startswith("concept "):
            left_out.add(number)
            depth += text.count("{") - text.count("}")
            concept = depth > 0 or not text.endswith(";")
        elif ends:
            left_out.add(number)
            ends = None if ends.search(text) else ends
        elif re.match(r"(//|template\b|using\b|namespace\b|requires\b|friend\b|(struct|class|enum)\b)", text):
            left_out.add(number)
        elif re.search(r"= (delete|default);", text):
            left_out.add(number)
        elif text.startswith("#"):
            left_out.add(number)
            ends = re.compile(r"[^\\]$|^$") if text.endswith("\\") else None
        elif text.startswith("throw ") and not text.endswith(";"):
            ends = re.compile(r";$")
        elif re.match(r"(static_assert|assert)\b", text):
            left_out.add(number)
            ends = None if text.endswith(";") else re.compile(r";$")
    return left_out


def in_some_order(lines, seed):
    """All changes: one of each line, then another one, …"""
    by_line = collections.defaultdict(list)
    for line, text in changes_of(lines):
        by_line[line].append((line, text))
    chance = random.Random(seed)
    for of_line in by_line.values():
        chance.shuffle(of_line)
    all_lines = list(by_line.values())
    chance.shuffle(all_lines)
    return [change for turn in itertools.zip_longest(*all_lines) for change in turn if change]
