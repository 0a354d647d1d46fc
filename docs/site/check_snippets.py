# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_snippets.py: the blocks of shell and CMake in the pages can be parsed. They are not run."""

import pathlib
import re
import subprocess
import sys
import tempfile


def parse_shell(text):
    return subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)


def parse_cmake(text):
    """The body of a function is parsed, and not run before it is called."""
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as file:
        file.write(f"function(snippet)\n{text}endfunction()\n")
        file.flush()
        return subprocess.run(["cmake", "-P", file.name], capture_output=True, text=True)


parsers = {"sh": parse_shell, "cmake": parse_cmake}


def main():
    problems, count = 0, 0
    pages = [*pathlib.Path().glob("*.md"), *pathlib.Path("docs").rglob("*.md"), *pathlib.Path("examples").rglob("*.md")]
    for page in sorted(pages):
        for block in re.finditer(r"^( *)```(\w+)\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE):
            indent, language, text = block.groups()
            if language in parsers:
                count += 1
                outcome = parsers[language](re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
                if outcome.returncode:
                    problems += 1
                    print(f"{page}: {language}: {outcome.stderr.strip()}\n{text}")
    print(f"{count} blocks of shell and CMake, {problems} cannot be parsed")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
