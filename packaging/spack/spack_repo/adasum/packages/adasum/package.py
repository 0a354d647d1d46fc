# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adasum for Spack: the sources are those of the clone that this file lies in."""

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Adasum(CMakePackage, CudaPackage):
    """C++20 library that combines the gradients of any number of workers by adaptive summation,
    in one process, over MPI or over NCCL, on CPUs and GPUs, so that training keeps its accuracy as
    workers are added."""

    homepage = "https://arxiv.org/abs/2006.02924"
    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("mpi", default=True, description="The communicator over MPI")
    variant("eigen", default=True, description="The rules that need Eigen")
    variant("kokkos", default=False, description="The execution space of Kokkos")
    variant("nccl", default=False, when="+cuda", description="The communicator over NCCL")
    variant("compiled", default=True, description="The library compiled once, its MPI part too")
    variant("c", default=False, when="+mpi", description="The C library")
    variant("fortran", default=False, when="+c", description="The Fortran module")

    depends_on("cxx", type="build")
    depends_on("c", type="build", when="+c")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")

    # MPI and Eigen are for what the package compiles, too; the others, for what is compiled with
    # its headers.
    depends_on("mpi@3:", when="+mpi")
    depends_on("eigen@3.3:3", when="+eigen")
    depends_on("kokkos cxxstd=20", when="+kokkos")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl", when="+nccl")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"kokkos +cuda cuda_arch={arch}", when=f"+kokkos+cuda cuda_arch={arch}")
        depends_on(f"nccl +cuda cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")

    conflicts("%gcc@:11", msg="adasum needs C++20, as in GCC 12 and later")
    conflicts("%llvm@:13", msg="adasum needs C++20, as in clang 14 and later")

    def cmake_args(self):
        arguments = [
            self.define("ADASUM_BUILD_TESTS", self.run_tests),
            self.define("ADASUM_BUILD_EXAMPLES", False),
            self.define("ADASUM_BUILD_BENCHMARKS", False),
            self.define("ADASUM_TORCH", False),
            self.define_from_variant("ADASUM_KOKKOS", "kokkos"),
            self.define_from_variant("ADASUM_INSTALL_COMPILED", "compiled"),
            self.define_from_variant("ADASUM_C", "c"),
            self.define_from_variant("ADASUM_FORTRAN", "fortran"),
            self.define_from_variant("CMAKE_REQUIRE_FIND_PACKAGE_MPI", "mpi"),
            self.define_from_variant("CMAKE_REQUIRE_FIND_PACKAGE_Eigen3", "eigen"),
        ]
        # Where a variant is off, what happens to be on this machine is not used either.
        if not self.spec.satisfies("+mpi"):
            arguments.append(self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", True))
        if not self.spec.satisfies("+eigen"):
            arguments.append(self.define("CMAKE_DISABLE_FIND_PACKAGE_Eigen3", True))
        return arguments

    @run_after("install")
    def keep_sources_of_tests(self):
        cache_extra_test_sources(
            self, ["tests/package/consumer/project", "tests/c/consumer/project", "examples"]
        )

    def build_and_run(self, name, project, *options, ranks=0):
        """Configures, builds and runs one of the projects that the library's own tests use."""
        folder = join_path(self.test_suite.current_test_cache_dir, project)
        cmake = which(self.spec["cmake"].prefix.bin.cmake, required=True)
        prefixes = self.define("CMAKE_PREFIX_PATH", [self.prefix, *get_cmake_prefix_path(self)])
        with working_dir(self.test_suite.test_dir_for_spec(self.spec)):
            build = f"build-{name}"
            cmake("-S", folder, "-B", build, prefixes, *options)
            cmake("--build", build)
            program = join_path(build, "consumer")
            if ranks:
                mpirun = which(self.spec["mpi"].prefix.bin.mpirun, required=True)
                mpirun("-np", str(ranks), program)
            else:
                Executable(join_path(".", program))()

    def build_and_run_consumer(self, name, *options, ranks=0):
        project = "tests/package/consumer/project"
        self.build_and_run(name, project, "-DADASUM_BY=find_package", *options, ranks=ranks)

    def test_find_package(self):
        """a program that finds the installed headers by CMake"""
        self.build_and_run_consumer("headers")

    def test_find_package_mpi(self):
        """the same on two ranks"""
        if not self.spec.satisfies("+mpi"):
            raise SkipTest("for +mpi")
        self.build_and_run_consumer("headers-mpi", "-DWITH_MPI=ON", ranks=2)

    def test_compiled(self):
        """the same program with the compiled library"""
        if not self.spec.satisfies("+compiled"):
            raise SkipTest("for +compiled")
        self.build_and_run_consumer("compiled", "-DWITH_COMPILED=ON")

    def test_compiled_mpi(self):
        """the same on two ranks"""
        if not self.spec.satisfies("+compiled+mpi"):
            raise SkipTest("for +compiled+mpi")
        options = ["-DWITH_COMPILED=ON", "-DWITH_MPI=ON"]
        self.build_and_run_consumer("compiled-mpi", *options, ranks=2)

    def test_c(self):
        """a program in C on two ranks"""
        if not self.spec.satisfies("+c"):
            raise SkipTest("for +c")
        source = join_path(self.test_suite.current_test_cache_dir, "examples", "c", "after.c")
        options = ["-DLANGUAGE=C", "-DCOMPONENT=c", f"-DSOURCE={source}"]
        self.build_and_run("c", "tests/c/consumer/project", *options, ranks=2)
