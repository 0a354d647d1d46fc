# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Studies of how rules train: python3 study.py NAME [options]. scripts/study installs what it needs, and calls it.

NAME is mnist, transformer, word2vec, residual or local_steps; each is a file of this folder that says what it asks. Results go
to OUT/NAME.csv as they are found (a study that is interrupted goes on where it was), pictures and tables beside it."""

import argparse
import contextlib
import importlib
import io
import os
import pathlib
import shutil
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core, of one thread each
titles = {"mnist": "Digits", "transformer": "Transformer", "word2vec": "Words", "residual": "Residual network",
          "local_steps": "Local steps"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("name", choices=titles)
    arguments.add_argument("--data", help="a folder with MNIST's t10k files and shakespeare.txt; data are generated if none")
    arguments.add_argument("--quick", action="store_true",
                           help="a small version, on generated data, of under a minute; fails if what it should show is not so")
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/studies"))
    arguments.add_argument("--jobs", type=int, help="processes; as many as there are cores, unless told otherwise")
    arguments.add_argument("--no-progress", action="store_true")
    chosen = arguments.parse_args()
    if chosen.quick:
        chosen.data, chosen.out = None, chosen.out / "quick" / chosen.name
        shutil.rmtree(chosen.out, ignore_errors=True)  # results of another version of the library
    study = importlib.import_module(chosen.name)
    if chosen.quick:
        sys.exit(study.quick(chosen))
    tables = io.StringIO()
    with contextlib.redirect_stdout(tables):
        study.main(chosen)
    print(tables.getvalue())
    (chosen.out / f"{chosen.name}.md").write_text(
        f"# {titles[chosen.name]}: all numbers\n\n{study.__doc__}\n\n{tables.getvalue().rstrip()}\n")


if __name__ == "__main__":
    main()
