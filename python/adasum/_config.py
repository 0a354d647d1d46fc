# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this package is, for reports of errors."""

from __future__ import annotations

import importlib.metadata
import pathlib
import platform
import sys

from ._library import library


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def show_config() -> None:
    """Prints what this package is, for reports of errors: its version and commit, the compiler, the vector instructions that it
    uses and those that this processor has, the environment variables that it knows, its MPI, and the Python packages that it
    works with. ``python -m adasum`` prints the same, and tests the package in a second."""
    folder = pathlib.Path(__file__).parent
    print(library.adasum_build_information().decode(errors="backslashreplace"), end="")
    variants = sorted(path.name.split(".")[1] for path in folder.glob("libadasum-calls.*.*"))
    if variants:
        print("MPI:", " or ".join(variants) + ", whichever mpi4py uses")
    print(f"Python: {platform.python_version()}, {platform.platform()}")
    for package in ("numpy", "mpi4py", "torch"):
        print(f"{package}: {_version_of(package)}")
    if "mpi4py.MPI" in sys.modules:
        print("MPI of mpi4py:", sys.modules["mpi4py.MPI"].Get_library_version().rstrip("\0").splitlines()[0])
    print("adasum.torch:", "compiled" if any(folder.glob("_torch.*.so")) else "left out, as there was no PyTorch to compile it for")
    print(f"folder: {folder}")
