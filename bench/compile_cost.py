#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compile_cost.py [--write] [COMPILER]

Counts what COMPILER (mpicxx.openmpi unless given) makes of small programs that use the library, header-only and with what
adasum::compiled holds compiled elsewhere, and compares it with bench/compile_cost.json: a regression check of compile time
that depends neither on the machine nor on its load, as seconds do. Counted are lines after preprocessing, and functions
emitted and their bytes; of headers alone, which emit nothing, also the bytes that the compiler allocates meanwhile: it
instantiates the templates that inline functions use, though nobody calls them. Of include/ itself: lines, files and bytes.

More than TOLERANCE above the file fails. --write writes the file anew. It holds the figures of one compiler and one MPI; exits
77, and says why, with any other. All takes some three minutes of processor.
"""

import argparse
import json
import multiprocessing.pool
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.05
SKIPPED = 77
FIGURES = pathlib.Path(__file__).with_suffix(".json")
ROOT = pathlib.Path(__file__).resolve().parent.parent
# As the CMake targets adasum::adasum and adasum::compiled_mpi do.
WAYS = {"header-only": [], "compiled": ["-DADASUM_COMPILED", "-DADASUM_COMPILED_MPI"]}
PAIR = """#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <vector>
int main() {
  std::vector<float> a(1000, 1.0f), b(1000, 2.0f), out(1000);
  adasum::adasum_pair(adasum::serial_space{}, a, b, out);
  return out[0] > 0 ? 0 : 1;
}
"""


def programs():
    """{name: (source, levels of optimization)}"""
    first = re.search(r"^```cpp\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    other = re.sub(r"adasum_allreduce\((.*?)\);", r"combine_allreduce(\1, adasum::rules::mean{});", first)
    if other == first:
        sys.exit("README.md: its first program has no call of adasum_allreduce on one line")
    return {"README": (first, ["-O0", "-O2"]), "README, mean": (other, ["-O0", "-O2"]), "pair": (PAIR, ["-O0", "-O2"]),
            "#include <adasum/adasum.hpp>": ("#include <adasum/adasum.hpp>\n", ["-O0"]),
            "#include <adasum/mpi.hpp>": ("#include <adasum/mpi.hpp>\n", ["-O0"])}


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{run.stderr}")
    return run.stdout, run.stderr


def sizes_of_functions(symbols):
    """From what nm -S prints of an object file."""
    fields = (line.split() for line in symbols.splitlines())
    return [int(line[1], 16) for line in fields if len(line) == 4 and line[2] in "TtWwu"]


def bytes_allocated(report):
    """From what g++ -ftime-report prints: the last column of the total."""
    number, unit = re.search(r"^ TOTAL .* (\d+)([kMG]?)$", report, re.MULTILINE).groups()
    return int(number) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[unit]


def count(compiler, source, flags):
    """The figures of one compilation."""
    header = source.startswith("#include") and source.count("\n") == 1
    with tempfile.TemporaryDirectory() as folder:
        file, compiled = pathlib.Path(folder) / "main.cpp", pathlib.Path(folder) / "main.o"
        file.write_text(source)
        command = [compiler, "-std=c++20", "-pthread", f"-I{ROOT / 'include'}", *flags, file]
        figures = {"lines": output_of([*command, "-E", "-P"])[0].count("\n")}
        _, report = output_of([*command, "-c", "-o", compiled, *(["-ftime-report"] if header else [])])
        sizes = sizes_of_functions(output_of(["nm", "-S", "--defined-only", compiled])[0])
    figures |= {"functions": len(sizes), "bytes": sum(sizes)}
    return figures | {"bytes allocated": bytes_allocated(report)} if header else figures


def count_all(compiler):
    cases = {f"{name}, {way}, {level}": (compiler, source, [*flags, level]) for name, (source, levels) in programs().items()
             for way, flags in WAYS.items() for level in levels}
    with multiprocessing.pool.ThreadPool(2) as two:
        counted = dict(zip(cases, two.starmap(count, cases.values())))
    texts = [file.read_bytes() for file in (ROOT / "include").rglob("*") if file.is_file()]
    counted["include/"] = {"lines": sum(text.count(b"\n") for text in texts), "files": len(texts),
                           "bytes": sum(map(len, texts))}
    return counted


def versions(compiler):
    """What the figures depend on, besides the library."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        print("#include <mpi.h>", file=file, flush=True)
        macros = dict(re.findall(r"^#define (\w+) (.+)$", output_of([compiler, "-dM", "-E", file.name])[0], re.MULTILINE))
    return (f"{'clang' if '__clang__' in macros else 'g++'} {macros['__GNUC__']}, "
            f"{'x86-64' if '__x86_64__' in macros else 'another processor'}, "
            f"{'Open MPI ' + macros['OMPI_MAJOR_VERSION'] if 'OMPI_MAJOR_VERSION' in macros else 'another MPI'}")


def compare(counted, known):
    """Prints a table. Returns what is more than the file allows, or stands only in one of the two."""
    wrong = [f"{case}: only in the file" for case in known if case not in counted]
    for case, figures in counted.items():
        for figure, now in figures.items():
            before = known.get(case, {}).get(figure)
            more = before is None or now > before * (1 + TOLERANCE)
            if more:
                wrong.append(f"{case}: {now} {figure}, {'not' if before is None else before} in the file")
            remark = "MORE" if more else "less: worth writing anew" if now < before * (1 - TOLERANCE) else ""
            change = f"{now / before - 1:+.1%}" if before else ""
            print(f"{case:47} {figure:16} {now:>12,} {change:>8}  {remark}".rstrip())
    return wrong


def main():
    parser = argparse.ArgumentParser(description="What compiling costs, against committed figures.")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("compiler", nargs="?", default="mpicxx.openmpi")
    given = parser.parse_args()

    here = versions(given.compiler)
    known = json.loads(FIGURES.read_text()) if not given.write else {"compiled by": here}
    if here != known["compiled by"]:
        print(f"Skipped: {FIGURES.name} has the figures of {known['compiled by']}, and this is {here}")
        return SKIPPED
    counted = count_all(given.compiler)
    if given.write:
        FIGURES.write_text(json.dumps({"compiled by": here, "figures": counted}, indent=1, sort_keys=True) + "\n")
        return 0
    wrong = compare(counted, known["figures"])
    if wrong:
        print(f"\nFAILED, against {FIGURES}:", *wrong, "If the change is worth it, write the file anew with --write, and say "
              "what costs more in CHANGELOG.md.", sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
