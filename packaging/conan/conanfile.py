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
    description = "Header-only C++20 library that combines the gradients of any number of workers by adaptive summation"
    license = "Apache-2.0 WITH LLVM-exception"
    author = "The adasum authors"
    homepage = "https://arxiv.org/abs/2006.02924"
    topics = ("adaptive summation", "allreduce", "distributed training", "gradient aggregation", "mpi", "header-only")

    package_type = "unknown"  # see configure()
    settings = "os", "arch", "compiler", "build_type"
    # MPI is that of the system, where the consumer's CMake finds it: Conan has no package that fits every cluster.
    options = {"eigen": [True, False], "compiled": [True, False], "c": [True, False]}
    default_options = {"eigen": True, "compiled": False, "c": False}

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
        # The library's own files for CMake are used, with all their components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append("share/cmake/adasum")
        self.cpp_info.set_property("pkg_config_name", "adasum")
        self.cpp_info.bindirs = []
        libraries = {"c": "adasum", "compiled": "adasum_compiled"}
        self.cpp_info.libs = [library for option, library in libraries.items() if self.options.get_safe(option)]
        if not self.cpp_info.libs:
            self.cpp_info.libdirs = []
        self.cpp_info.system_libs.append("pthread")
