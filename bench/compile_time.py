#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compile_time.py [--each] [--repetitions N] COMPILER INCLUDE_DIRECTORY

What `#include <adasum/adasum.hpp>` costs over the standard headers that it includes: processor time of
`COMPILER -std=c++20 -fsyntax-only` for the one and for the others, in turns. Prints JSON with every repetition's seconds.
--each prints, instead, what each header of the library would cost alone, over the standard headers of all of it.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

HEADER = "adasum/adasum.hpp"


def own_headers(compiler, include, header):
    """The library's headers that a header includes, itself among them, in the order of their names."""
    rule = subprocess.run([*compiler, "-M", "-x", "c++", include / header], capture_output=True, text=True, check=True).stdout
    files = {pathlib.Path(word).resolve() for word in rule.replace("\\\n", " ").split()[1:]}
    return sorted(file.relative_to(include) for file in files if file.is_relative_to(include))


def standard_headers(include, headers):
    names = (re.findall(r"^#include <([a-z_]+)>", (include / header).read_text(), re.MULTILINE) for header in headers)
    # core/config.hpp ends a compilation that lacks something by including what does not exist.
    return sorted(name for name in set().union(*names) if not name.startswith("adasum_"))


def compile_once(command):
    """@return seconds of processor time (what else the machine does meanwhile is not the compiler's), MB of memory"""
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise subprocess.CalledProcessError(child.returncode, command)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def in_turns(compiler, included, repetitions):
    """{name: seconds of each repetition} of files that include the given headers, after one that does not count."""
    with tempfile.TemporaryDirectory() as folder:
        sources = {name: pathlib.Path(folder) / f"{place}.cpp" for place, name in enumerate(included)}
        for name, source in sources.items():
            source.write_text("".join(f"#include <{header}>\n" for header in included[name]))
        seconds = {name: [] for name in included}
        for _ in range(repetitions + 1):
            for name, source in sources.items():
                seconds[name].append(compile_once([*compiler, "-fsyntax-only", source])[0])
    return {name: values[1:] for name, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description="What including the library costs.")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--repetitions", type=int, default=11)
    parser.add_argument("compiler")
    parser.add_argument("include", type=lambda path: pathlib.Path(path).resolve())
    given = parser.parse_args()

    compiler = [given.compiler, "-std=c++20", f"-I{given.include}"]
    headers = own_headers(compiler, given.include, HEADER)
    standard = standard_headers(given.include, headers)
    if given.each:
        included = {"": standard, **{str(header): [*standard, header] for header in headers}}
        seconds = {name: statistics.median(values)
                   for name, values in in_turns(compiler, included, given.repetitions).items()}
        alone = seconds.pop("")
        for name, total in sorted(seconds.items(), key=lambda item: -item[1]):
            print(f"{total - alone:6.3f} s  {name}")
    else:
        included = {"standard": standard, "library": [*standard, HEADER]}
        print(json.dumps({"header": HEADER, "standard_headers": standard,
                          "seconds": in_turns(compiler, included, given.repetitions)}, indent=1))


if __name__ == "__main__":
    main()
