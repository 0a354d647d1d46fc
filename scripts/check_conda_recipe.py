# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_conda_recipe.py FOLDER RECIPE: builds the package and runs its tests, for scripts/check-packaging.

No package is downloaded. Those of the compiler, CMake and Ninja are made here, and hold nothing: the build finds what this
machine has.
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

for name in ("gxx_linux-64", "sysroot_linux-64", "cmake", "ninja"):
    stand_in = folder / "stand-ins" / name / "recipe.yaml"
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    version = "2.28" if name.startswith("sysroot") else "99"
    stand_in.write_text(f'package: {{name: {name}, version: "{version}"}}\nbuild: {{noarch: generic}}\n')
    rattler_build.build_recipes([str(stand_in)], output_dir=str(channel), channel=[])

rattler_build.build_recipes(
    [recipe], output_dir=str(channel), channel=[channel.as_uri()], variant_config=[str(variants)], test="native"
)
packages = list((channel / "noarch").glob("adasum-*.conda"))
if len(packages) != 1:
    sys.exit(f"there is not one package of adasum, but {len(packages)}")
rattler_build.test_package(packages[0], channel=[channel.as_uri()])
print(packages[0].name, "is built, and passes its tests")
