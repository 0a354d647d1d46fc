# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_conda_recipe.py FOLDER RECIPE: builds the packages and runs their tests, for scripts/check-packaging.

No package is downloaded. Those of the compiler, CMake, Ninja and MPI are made here, and hold nothing: the build finds
what this machine has. Of the variants, one is built with MPI, whichever this machine has, and one without.
"""

import sys
import warnings
from pathlib import Path

import rattler_build

warnings.simplefilter("ignore")  # which say that this interface will go

folder, recipe = Path(sys.argv[1]).resolve(), sys.argv[2]
channel = folder / "channel"
variants = folder / "variants.yaml"
variants.write_text('c_stdlib: [sysroot]\nc_stdlib_version: ["2.28"]\n')

for name in ("gxx_linux-64", "sysroot_linux-64", "cmake", "ninja", "openmpi"):
    stand_in = folder / "stand-ins" / name / "recipe.yaml"
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    version = "2.28" if name.startswith("sysroot") else "99"
    stand_in.write_text(f'package: {{name: {name}, version: "{version}"}}\nbuild: {{noarch: generic}}\n')
    rattler_build.build_recipes([str(stand_in)], output_dir=str(channel), channel=[])

rattler_build.build_recipes(
    [recipe],
    output_dir=str(channel),
    channel=[channel.as_uri()],
    variant_config=[str(variants)],
    variant_overrides={"mpi": ["nompi", "openmpi"]},
    test="native",
)
packages = sorted(channel.glob("*/adasum-*.conda"))
if len(packages) != 3:
    sys.exit(f"there are not three packages of adasum, but {len(packages)}")
for package in packages:
    rattler_build.test_package(package, channel=[channel.as_uri()])
    print(package.name, "is built, and passes its tests")
