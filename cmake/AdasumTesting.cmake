# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   adasum_add_test(<name> SOURCES a.cpp ... [LIBRARIES ...] [TIMEOUT seconds] [LABELS ...] [OPTIMIZED])
#       A doctest executable (main() is tests/doctest_main.cpp), registered in ctest. Label `unit` unless others are given.
#
#   adasum_add_mpi_test(<name> SOURCES a.cpp ... RANKS 1 2 3 ... [LIBRARIES ...] [TIMEOUT seconds] [LABELS ...])
#       An MPI executable with a main() of its own, or adasum_doctest_mpi_main's, registered as <name>.<ranks> for each number of ranks, with label
#       `mpi` in addition to those given.
#
# Both are compiled with warnings as errors and, whatever the build type, with assertions and agreement checks on.
# A sanitizer slows tests down, so timeouts (120 seconds unless given) are multiplied then.
# Optimizing costs more time than the rest of a build, so ADASUM_TEST_OPTIMIZATION (a flag, as -O1) replaces the build
# type's level; not in tests that are OPTIMIZED, because what the compiler makes of kernels is what they check.
# What a label's tests need is built by the target tests_<label>.

include("${CMAKE_CURRENT_LIST_DIR}/AdasumSources.cmake")
adasum_find_or_build(doctest)
if(NOT TARGET doctest::doctest)
  message(FATAL_ERROR "adasum: the tests need doctest (Debian: doctest-dev), or FETCHCONTENT_SOURCE_DIR_DOCTEST")
endif()

# -Wsign-conversion is part of clang's -Wconversion but not of g++'s: tests may count in int, the library may not
# (tests/package).
add_library(adasum_warnings INTERFACE)
target_compile_options(adasum_warnings INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Werror)
# The same for sources that nvcc compiles.
add_library(adasum_cuda_warnings INTERFACE)
target_compile_options(adasum_cuda_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>")

set(ADASUM_TEST_OPTIMIZATION "" CACHE STRING "The tests' own optimization flag; empty: the build type's")

add_library(adasum_test_options INTERFACE)
target_compile_options(adasum_test_options INTERFACE -UNDEBUG)
target_link_libraries(adasum_test_options INTERFACE adasum::adasum adasum_warnings doctest::doctest)

function(adasum_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "OPTIMIZED" "TIMEOUT" "SOURCES;LIBRARIES;LABELS")
  adasum_check_test_arguments(${name})
  if(NOT test_LABELS)
    set(test_LABELS unit)
  endif()
  add_executable(${name} ${test_SOURCES})
  if(NOT test_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${ADASUM_TEST_OPTIMIZATION})
  endif()
  target_link_libraries(${name} PRIVATE adasum_test_options adasum_doctest_main ${test_LIBRARIES})
  adasum_build_with_labels(${name} ${test_LABELS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}")
endfunction()

function(adasum_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "SOURCES;RANKS;LIBRARIES;LABELS")
  adasum_check_test_arguments(${name})
  if(NOT test_RANKS)
    message(FATAL_ERROR "adasum_add_mpi_test(${name}): no RANKS")
  endif()
  if(NOT TARGET adasum::mpi)
    message(STATUS "adasum: no MPI, so no test ${name}")
    return()
  endif()
  add_executable(${name} ${test_SOURCES})
  target_compile_options(${name} PRIVATE ${ADASUM_TEST_OPTIMIZATION})
  target_link_libraries(${name} PRIVATE adasum_test_options adasum::mpi ${test_LIBRARIES})
  adasum_build_with_labels(${name} mpi ${test_LABELS})
  foreach(ranks IN LISTS test_RANKS)
    adasum_mpi_command(command ${ranks} $<TARGET_FILE:${name}>)
    add_test(NAME ${name}.${ranks} COMMAND ${command})
    # PROCESSORS keeps other tests away from ranks that wait actively.
    set_tests_properties(${name}.${ranks} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "mpi;${test_LABELS}"
      PROCESSORS ${ranks} ENVIRONMENT "${adasum_mpi_environment}")
  endforeach()
endfunction()

# Sets `variable` to the command line that runs a program on so many ranks, more than there are cores if need be.
function(adasum_mpi_command variable ranks)
  set(flags ${adasum_mpi_flags})
  if(adasum_mpi_is_open_mpi AND ranks GREATER 2)
    list(APPEND flags --mca mpi_yield_when_idle 1)
  endif()
  set(${variable} "${MPIEXEC_EXECUTABLE}" ${flags} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${ARGN} PARENT_SCOPE)
endfunction()

function(adasum_build_with_labels target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()

macro(adasum_check_test_arguments name)
  if(test_UNPARSED_ARGUMENTS OR NOT test_SOURCES)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}(${name}): SOURCES missing, or unknown: ${test_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  if(ADASUM_SANITIZE)
    math(EXPR test_TIMEOUT "5 * ${test_TIMEOUT}")
  endif()
endmacro()

# What the MPI in use needs to run here: Open MPI refuses more ranks than cores, and root, unless it is told otherwise.
set(adasum_mpi_flags "")
set(adasum_mpi_environment "")
set(adasum_mpi_is_open_mpi FALSE)
if(TARGET adasum::mpi)
  execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE mpi_version ERROR_VARIABLE mpi_version)
  if(mpi_version MATCHES "Open MPI|OpenRTE|open-mpi")
    set(adasum_mpi_is_open_mpi TRUE)
    set(adasum_mpi_flags --oversubscribe)
    execute_process(COMMAND id -u OUTPUT_VARIABLE user_id OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(user_id STREQUAL "0")
      set(adasum_mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    endif()
  endif()
endif()
