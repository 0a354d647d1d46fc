# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""refused.py FOUND COMPILER ARGUMENTS... SOURCE: compiles a file in which lines must be refused, each in the words that follow
its last `//`, as `a call × an argument: words`. Fails unless these lines are refused so, by one error each, and no other is.
What was found is compared with the file FOUND, or written there if ADASUM_WRITE_FINDINGS is set, as findings.hpp does."""

import os
import pathlib
import re
import subprocess
import sys


def expected_in(source):
    """Of each line that must be refused: the call, the argument, the words."""
    found = {}
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.search(r";\s*// (.*) × (.*?): (.*)$", line):
            found[number] = match.groups()
    return found


def errors_in(output, source):
    """(line of the source, message), of g++, which says first where a call is, or of clang++, which says so afterwards."""
    is_clang = "in instantiation of" in output
    errors, line_before, waiting = [], None, False
    for text in output.splitlines():
        if match := re.search(rf"{re.escape(source.name)}:(\d+):\d+:.*(required from|requested) here", text):
            line_before = int(match[1])
            if waiting:
                errors[-1] = (line_before, errors[-1][1])
                waiting = False
        elif match := re.match(r".*error: (.*)", text):
            waiting = is_clang
            errors.append((line_before, match[1]))
    return errors


def main():
    found_file, command, source = pathlib.Path(sys.argv[1]), sys.argv[2:], pathlib.Path(sys.argv[-1])
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    expected, problems = expected_in(source), []
    errors = errors_in(result.stderr, source)
    for number, (call, argument, words) in expected.items():
        of_line = [message for line, message in errors if line == number]
        if len(of_line) != 1 or words not in of_line[0]:
            problems.append(f"line {number}, {call} × {argument}: expected one error with '{words}', found {of_line}")
    problems += [f"line {line} is refused: {message}" for line, message in errors if line not in expected]

    tables = {}
    for call, argument, words in expected.values():
        tables.setdefault(call, []).append(f"  {argument}: compiler: {words}\n")
    text = "[refused by the compiler]\n" + "".join(call + "\n" + "".join(lines) for call, lines in tables.items())
    text += f"[counts]\nrefused: {len(expected)}\n"
    if "ADASUM_WRITE_FINDINGS" in os.environ:
        if not problems:
            found_file.write_text(text)
    elif not found_file.exists() or found_file.read_text() != text:
        problems.append(f"{found_file} says something else; if the source is right, run scripts/works-together")
    print("\n".join(problems) or f"{len(expected)} calls are refused as they should be")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
