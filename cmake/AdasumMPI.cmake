# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds MPI, if there is one. ADASUM_MPI picks between implementations that are installed side by side under the names
# mpicxx.<implementation> and mpirun.<implementation>, as on Debian.

set(ADASUM_MPI "" CACHE STRING "openmpi, mpich, or empty for the MPI that CMake finds")
set_property(CACHE ADASUM_MPI PROPERTY STRINGS "" openmpi mpich)

if(NOT "${ADASUM_MPI}" STREQUAL "${ADASUM_MPI_IN_USE}" AND DEFINED CACHE{ADASUM_MPI_IN_USE})
  message(FATAL_ERROR "adasum: this build directory was configured with ADASUM_MPI='${ADASUM_MPI_IN_USE}', "
                      "not '${ADASUM_MPI}': use another one, or configure with --fresh")
endif()

if(ADASUM_MPI)
  find_program(ADASUM_MPI_COMPILER mpicxx.${ADASUM_MPI})
  find_program(ADASUM_MPI_RUNNER mpirun.${ADASUM_MPI})
  mark_as_advanced(ADASUM_MPI_COMPILER ADASUM_MPI_RUNNER)
  if(NOT ADASUM_MPI_COMPILER OR NOT ADASUM_MPI_RUNNER)
    message(FATAL_ERROR "adasum: ADASUM_MPI=${ADASUM_MPI}, but there is no mpicxx.${ADASUM_MPI} and "
                        "mpirun.${ADASUM_MPI} (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich)")
  endif()
  set(MPI_CXX_COMPILER "${ADASUM_MPI_COMPILER}" CACHE FILEPATH "MPI compiler for CXX" FORCE)
  set(MPIEXEC_EXECUTABLE "${ADASUM_MPI_RUNNER}" CACHE FILEPATH "Executable for running MPI programs" FORCE)
endif()

set(MPI_CXX_VALIDATE_SKIP_MPICXX TRUE)  # does not look for the C++ bindings that MPI 3 removed
if(ADASUM_MPI)
  find_package(MPI REQUIRED GLOBAL COMPONENTS CXX)
else()
  find_package(MPI QUIET GLOBAL COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  message(STATUS "adasum: MPI ${MPI_CXX_VERSION}, compiled by ${MPI_CXX_COMPILER}")
else()
  message(STATUS "adasum: no MPI (Debian: libopenmpi-dev openmpi-bin), so no adasum::mpi")
endif()
set(ADASUM_MPI_IN_USE "${ADASUM_MPI}" CACHE INTERNAL "the ADASUM_MPI of the first configuration")
