# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adasum for Conan 2: `conan create packaging/conan` in a clone, whose sources it packs."""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.scm import Version

required_conan_version = ">=2.0"


class Adasum(ConanFile):
    name = "adasum"
    description = "C++20 library that combines the gradients of any number of workers by adaptive summation"
    license = "Apache-2.0 WITH LLVM-exception"
    author = "The adasum authors"
    homepage = "https://arxiv.org/abs/2006.02924"
    topics = ("adaptive summation", "allreduce", "distributed training", "gradient aggregation", "mpi")

    package_type = "unknown"  # see configure()
    settings = "os", "arch", "compiler", "build_type"
    # MPI is that of the system, where the consumer's CMake finds it: Conan has no package that fits every cluster.
    # adasum::mpi is always there; the option is for what is compiled.
    options = {"eigen": [True, False], "compiled": [True, False], "mpi": [True, False], "c": [True, False]}
    default_options = {"eigen": True, "compiled": True, "mpi": False, "c": False}

    @property
    def _sources(self):
        return Path(self.recipe_folder).parents[1]

    def set_version(self):
        text = load(self, self._sources / "include" / "adasum" / "version.hpp")
        numbers = [re.search(rf"#define ADASUM_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "packaging/debian/*"):
            copy(self, pattern, self._sources, self.export_sources_folder)

    def configure(self):
        if self.options.c:
            self.package_type = "shared-library"
        elif self.options.compiled:
            self.package_type = "static-library"
        else:
            self.package_type = "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.eigen:
            self.requires("eigen/[>=3.3 <4]", transitive_headers=True)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def package_id(self):
        if self.package_type == "header-library":
            self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        oldest = {"gcc": "12", "clang": "14"}.get(str(self.settings.compiler))
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"adasum needs C++20, as in {self.settings.compiler} {oldest} and later")
        if self.options.c and not self.options.mpi:
            raise ConanInvalidConfiguration("adasum's option c needs its option mpi")
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("adasum is for Linux")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(
            {
                "ADASUM_BUILD_TESTS": False,
                "ADASUM_BUILD_EXAMPLES": False,
                "ADASUM_BUILD_BENCHMARKS": False,
                "ADASUM_KOKKOS": False,
                "ADASUM_TORCH": False,
                "ADASUM_INSTALL_COMPILED": bool(self.options.compiled),
                "ADASUM_C": bool(self.options.c),
                "CMAKE_DISABLE_FIND_PACKAGE_Eigen3": not self.options.eigen,
                "CMAKE_DISABLE_FIND_PACKAGE_MPI": not self.options.mpi,
                "CMAKE_REQUIRE_FIND_PACKAGE_MPI": bool(self.options.mpi),
            }
        )
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        rmdir(self, Path(self.package_folder) / "share" / "doc")

    def package_info(self):
        # CMake uses the library's own files, with all their components. What follows is for other build systems.
        self.cpp_info.set_property("cmake_find_mode", "none")
        headers = self._component("adasum", "adasum")
        headers.builddirs = ["share/cmake/adasum"]
        headers.system_libs = ["pthread"]
        if self.options.eigen:
            self._component("eigen", "adasum-eigen", requires=["adasum", "eigen::eigen"])
        if self.options.compiled:
            part = self._component("compiled", "adasum-compiled", "adasum_compiled", requires=["adasum"])
            part.defines = ["ADASUM_COMPILED"]
        if self.options.compiled and self.options.mpi:
            part = self._component("compiled_mpi", "adasum-compiled-mpi", "adasum_compiled_mpi", requires=["compiled"])
            part.defines = ["ADASUM_COMPILED_MPI"]
        if self.options.c:
            self._component("c", "adasum-c", "adasum")

    def _component(self, name, pkg_config_name, library=None, requires=()):
        """A component with the name of its CMake target."""
        component = self.cpp_info.components[name]
        component.set_property("pkg_config_name", pkg_config_name)
        component.requires = list(requires)
        component.bindirs = []
        component.libdirs = ["lib"] if library else []
        component.libs = [library] if library else []
        return component
