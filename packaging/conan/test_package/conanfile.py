# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds and runs the programs by which the library tests its own installation."""

from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain

BUILD = "build/packaging/conan-test"


class TestAdasum(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def layout(self):
        self.folders.root = str(Path(self.recipe_folder).parents[2])
        self.folders.source = "tests"
        self.folders.build = BUILD
        self.folders.generators = f"{BUILD}/generators"

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["ADASUM_BY"] = "find_package"
        options = self._package.options
        toolchain.cache_variables["WITH_COMPILED"] = bool(options.compiled)
        toolchain.cache_variables["WITH_MPI"] = bool(options.mpi)
        if options.c:
            source = Path(self.source_folder) / "c" / "consumer" / "project" / "in_cxx.cpp"
            toolchain.cache_variables.update({"LANGUAGE": "CXX", "COMPONENT": "c", "SOURCE": str(source)})
        toolchain.generate()

    @property
    def _package(self):
        return self.dependencies["adasum"]

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=f"{'c' if self._package.options.c else 'package'}/consumer/project")
        cmake.build()

    def test(self):
        files = (self._package.package_path / "lib").glob("lib*.*")
        there = {file.name.split(".")[0].removeprefix("lib") for file in files}
        declared = set(self._package.cpp_info.aggregated_components().libs)
        if there != declared:
            raise ConanException(f"the package has the libraries {sorted(there)}, and declares {sorted(declared)}")
        if can_run(self):
            runner = "mpirun -np 2 " if self._package.options.mpi else ""
            self.run(f"{runner}{Path(self.build_folder) / 'consumer'}")
