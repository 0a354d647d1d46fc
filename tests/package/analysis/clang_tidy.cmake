# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Each test reads all that it needs for itself, which is most of its time, so sources that belong together are read as one. A
# test takes a quarter of a minute to a good minute of a processor.

# adasum_add_tidy_test(<name> <file> [AFTER <file>...] [FLAGS <flag>...]): of the file, of others that precede it, and of the
# headers that .clang-tidy names.
function(adasum_add_tidy_test name file)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "" "AFTER;FLAGS")
  set(checks "")
  if(test_AFTER)
    set(checks --checks=-bugprone-suspicious-include)  # of files whose names end in .cpp
    list(TRANSFORM test_AFTER PREPEND "-include")
  endif()
  add_test(NAME ${name} COMMAND "${ADASUM_CLANG_TIDY}" --quiet "--config-file=${PROJECT_SOURCE_DIR}/.clang-tidy" ${checks}
    "${file}" -- -std=c++20 ${adasum_include_flags} ${test_FLAGS} ${test_AFTER})
  set_tests_properties(${name} PROPERTIES LABELS package TIMEOUT 1200)
endfunction()

# The library's headers, by programs that call them.
set(here "${CMAKE_CURRENT_SOURCE_DIR}")
set(with_mpi "")
if(TARGET adasum::mpi)
  set(with_mpi -DADASUM_TEST_MPI)
endif()
adasum_add_tidy_test(analysis.clang_tidy "${here}/calls.cpp" FLAGS ${with_mpi})
if(TARGET adasum::eigen)
  adasum_add_tidy_test(analysis.clang_tidy.eigen "${here}/eigen.cpp")
endif()
# It finds what it should.
adasum_add_tidy_test(analysis.clang_tidy.violated "${here}/violated.cpp")
set_tests_properties(analysis.clang_tidy.violated PROPERTIES PASS_REGULAR_EXPRESSION "bugprone-use-after-move")

# What it finds does not depend on the compiler of the build: the rest, which takes minutes, once in all of scripts/test.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  return()
endif()

if(TARGET adasum::kokkos)
  adasum_add_tidy_test(analysis.clang_tidy.kokkos "${here}/kokkos.cpp")
else()
  message(STATUS "adasum: no Kokkos (Debian 12: libtrilinos-kokkos-dev), so no test analysis.clang_tidy.kokkos")
endif()
# clang 14 knows _Float16 on some processors only, and no constants of which a part is not initialised, as __shared__ is where
# it is emulated. Nothing of this is run.
if(CMAKE_SIZEOF_VOID_P EQUAL 8)
  adasum_add_tidy_test(analysis.clang_tidy.devices "${here}/devices.cpp"
    FLAGS ${with_mpi} ${adasum_emulated_cuda_flags} -DADASUM_EMULATED_CUDA -D_Float16=__fp16 -Dconstinit=)
endif()

# Of Debian's libtorch, whether or not this build uses it. In C++20, clang 14 can read its headers in this order alone.
find_path(ADASUM_TIDY_TORCH torch/csrc/distributed/c10d/ProcessGroup.hpp PATHS /usr/include NO_DEFAULT_PATH)
find_path(ADASUM_TIDY_PYBIND11 pybind11/pybind11.h PATHS /usr/include NO_DEFAULT_PATH)
mark_as_advanced(ADASUM_TIDY_TORCH ADASUM_TIDY_PYBIND11)
set(torch_flags "-I${PROJECT_SOURCE_DIR}/src/torch/include"
  "-isystem${ADASUM_TIDY_TORCH}/torch/csrc/api/include" -include ATen/core/ivalue.h)
if(ADASUM_TIDY_TORCH)
  adasum_add_tidy_test(analysis.clang_tidy.c10d "${here}/c10d.cpp" FLAGS ${torch_flags})
else()
  message(STATUS "adasum: no libtorch (Debian: libtorch-dev), so no test analysis.clang_tidy.c10d")
endif()

# The sources of the C library, and those of the Python package that go with it. All types of elements have the same code.
set(sources "${PROJECT_SOURCE_DIR}/src")
if(TARGET adasum::mpi)
  file(GLOB others CONFIGURE_DEPENDS "${sources}/c/*.cpp")
  list(FILTER others EXCLUDE REGEX "/(of_(double|half|bfloat16)|plans)\\.cpp$")
  adasum_add_tidy_test(analysis.clang_tidy.c "${sources}/c/plans.cpp"
    AFTER ${others} "${sources}/python/refusals.cpp" "${sources}/python/signals.cpp")
endif()
# The Python package's module for PyTorch.
find_package(Python QUIET COMPONENTS Interpreter Development.Module)
if(ADASUM_TIDY_TORCH AND ADASUM_TIDY_PYBIND11 AND Python_Development.Module_FOUND)
  adasum_add_tidy_test(analysis.clang_tidy.python "${sources}/python/module.cpp"
    AFTER "${sources}/python/reducer.cpp" "${sources}/python/group_worker.cpp"
    FLAGS ${torch_flags} "-isystem${Python_INCLUDE_DIRS}")
else()
  message(STATUS "adasum: no libtorch, no pybind11 or no headers of Python (Debian: libtorch-dev pybind11-dev python3-dev), so "
    "no test analysis.clang_tidy.python")
endif()

# It finds what it should in what is looked at with a file, too, which depends on the folder.
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp" "")
foreach(folder IN ITEMS include/adasum src/c src/python)
  configure_file(violated.cpp "${folder}/violated.cpp" COPYONLY)
  string(REPLACE "/" "." name "analysis.clang_tidy.violated.${folder}")
  adasum_add_tidy_test(${name} "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp"
    AFTER "${CMAKE_CURRENT_BINARY_DIR}/${folder}/violated.cpp")
  set_tests_properties(${name} PROPERTIES
    PASS_REGULAR_EXPRESSION "${folder}/violated.cpp:[0-9:]+ error: [^\n]*bugprone-use-after-move,-warnings-as-errors")
endforeach()
