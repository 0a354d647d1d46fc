# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   adasum_add_test(<name> SOURCES a.cpp ... [LIBRARIES ...] [TIMEOUT seconds] [LABELS ...] [OPTIMIZED]
#                   [EACH_SOURCE [PREFIX prefix]])
#       A doctest executable (main() is tests/doctest_main.cpp), registered in ctest. Label `unit` unless others are given.
#       EACH_SOURCE: each source is a test of its own, folder/name.cpp the test <prefix>folder.name.
#
#   adasum_add_mpi_test(<name> SOURCES a.cpp ... RANKS 1 2 3 ... [LIBRARIES ...] [TIMEOUT seconds] [LABELS ...]
#                       [EACH_SOURCE])
#       An MPI executable with a main() of its own, or adasum_doctest_mpi_main's, registered as <name>.<ranks> (EACH_SOURCE:
#       folder.name.<ranks>) for each number of ranks, with label `mpi` in addition to those given.
#
#   adasum_add_torch_test(<name> SOURCES a.cpp ... PROCESSES 1 2 3 ... [LIBRARIES ...] [TIMEOUT seconds])
#       A doctest executable that runs in so many processes, which talk by gloo (support/gloo_main.cpp), each source a test
#       folder.name.<processes>, with label `torch`.
#
#   adasum_add_cluster_test(<name> SOURCES a.cpp ... LAYOUTS "<layout>=<nodes>" ... [LIBRARIES ...] [TIMEOUT seconds])
#       An MPI executable that runs on the nodes of scripts/cluster, registered as <name>.<layout>, with label `cluster`.
#       The nodes of a layout are those of its ranks: "0 0 1" for two on the first node and one on the second. They are
#       given to the program as ADASUM_TEST_NODES. Skipped, with the reason, where a machine cannot make such nodes.
#
# All are compiled with warnings as errors and, whatever the build type, with assertions and agreement checks on.
# Sanitizers and emulated processors slow tests down, so timeouts (120 seconds unless given) are multiplied then.
# Optimizing costs more time than the rest of a build, so ADASUM_TEST_OPTIMIZATION (a flag, as -O1) replaces the build
# type's level, also in examples and benchmarks; not in tests that are OPTIMIZED, because what the compiler makes of kernels
# is what they check.
# Where ADASUM_TEST_UNITY is on, up to eight sources of a program are compiled as one, which takes a third of the time; so
# all that a source defines lies in a namespace of its own, test_of_<folder>_<name>.
# What a label's tests need is built by the target tests_<label>.
#
#   adasum_quick(<label> TARGETS ... TESTS ...)
#       These tests, which need these targets, are among those that scripts/test runs without an argument, label `quick`, in
#       builds where ADASUM_QUICK names the label.

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

set(ADASUM_QUICK "" CACHE STRING "Labels of which some tests are quick ones: unit, threads, package, bindings (mpi always)")

option(ADASUM_TEST_UNITY "Compile the sources of a test program together" OFF)

add_library(adasum_test_options INTERFACE)
target_compile_options(adasum_test_options INTERFACE -UNDEBUG)
# Assertions take a third of the time that tests take to compile otherwise. An exception in one ends the test case.
target_compile_definitions(adasum_test_options INTERFACE DOCTEST_CONFIG_SUPER_FAST_ASSERTS
  DOCTEST_CONFIG_NO_TRY_CATCH_IN_ASSERTS)
# The checks of UndefinedBehaviorSanitizer double the time to compile a test. The engine and the kernels have them, compiled
# once, and so have the fuzz targets, which make the public calls in all ways.
if(ADASUM_SANITIZE MATCHES "undefined")
  target_compile_options(adasum_test_options INTERFACE -fno-sanitize=undefined)
endif()
target_link_libraries(adasum_test_options INTERFACE adasum::adasum adasum_warnings doctest::doctest)

function(adasum_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "OPTIMIZED;EACH_SOURCE" "TIMEOUT;PREFIX" "SOURCES;LIBRARIES;LABELS")
  adasum_check_test_arguments(${name})
  if(NOT test_LABELS)
    set(test_LABELS unit)
  endif()
  add_executable(${name} ${test_SOURCES})
  if(NOT test_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${ADASUM_TEST_OPTIMIZATION})
  endif()
  target_link_libraries(${name} PRIVATE adasum_test_options adasum_doctest_main ${test_LIBRARIES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ADASUM_TEST_UNITY})
  adasum_build_with_labels(${name} ${test_LABELS})
  if(NOT test_EACH_SOURCE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}")
    return()
  endif()
  foreach(source IN LISTS test_SOURCES)
    adasum_test_of_source(test filter ${source})
    string(PREPEND test "${test_PREFIX}")
    add_test(NAME ${test} COMMAND ${name} ${filter})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}" ${adasum_no_empty_test})
  endforeach()
endfunction()

# Sets `test` to folder.name for the source folder/name.cpp, and `filter` to the argument by which a doctest program runs
# the test cases of that file alone.
function(adasum_test_of_source test filter source)
  cmake_path(REMOVE_EXTENSION source OUTPUT_VARIABLE stem)
  string(REPLACE "/" "." stem "${stem}")
  cmake_path(ABSOLUTE_PATH source NORMALIZE)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set(${test} ${stem} PARENT_SCOPE)
  set(${filter} "--source-file=*${source}" PARENT_SCOPE)
endfunction()

# A filter that no test case passes is a failure.
set(adasum_no_empty_test FAIL_REGULAR_EXPRESSION "test cases: *0 ")

function(adasum_add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "EACH_SOURCE" "TIMEOUT" "SOURCES;RANKS;LIBRARIES;LABELS")
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
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${ADASUM_TEST_UNITY})
  adasum_build_with_labels(${name} mpi ${test_LABELS})
  if(NOT test_EACH_SOURCE)
    set(test_SOURCES all)
  endif()
  foreach(source IN LISTS test_SOURCES)
    set(test ${name})
    set(filter "")
    if(test_EACH_SOURCE)
      adasum_test_of_source(test filter ${source})
    endif()
    foreach(ranks IN LISTS test_RANKS)
      adasum_mpi_command(command ${ranks} $<TARGET_FILE:${name}> ${filter})
      add_test(NAME ${test}.${ranks} COMMAND ${command})
      # PROCESSORS keeps other tests away from ranks that wait actively.
      set_tests_properties(${test}.${ranks} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "mpi;${test_LABELS}"
        PROCESSORS ${ranks} ENVIRONMENT "${adasum_mpi_environment}" ${adasum_no_empty_test})
    endforeach()
  endforeach()
endfunction()

function(adasum_add_torch_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "SOURCES;PROCESSES;LIBRARIES")
  adasum_check_test_arguments(${name})
  add_executable(${name} ${test_SOURCES} support/gloo_main.cpp)
  target_compile_options(${name} PRIVATE ${ADASUM_TEST_OPTIMIZATION})
  target_link_libraries(${name} PRIVATE adasum_test_options adasum::torch ${test_LIBRARIES})
  adasum_build_with_labels(${name} torch)
  foreach(source IN LISTS test_SOURCES)
    adasum_test_of_source(test filter ${source})
    foreach(processes IN LISTS test_PROCESSES)
      add_test(NAME ${test}.${processes} COMMAND ${name} ${processes} ${filter})
      set_tests_properties(${test}.${processes} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS torch PROCESSORS ${processes}
        ${adasum_no_empty_test})
    endforeach()
  endforeach()
endfunction()

function(adasum_add_cluster_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "SOURCES;LAYOUTS;LIBRARIES")
  adasum_check_test_arguments(${name})
  add_executable(${name} ${test_SOURCES})
  target_compile_options(${name} PRIVATE ${ADASUM_TEST_OPTIMIZATION})
  target_link_libraries(${name} PRIVATE adasum_test_options adasum::mpi ${test_LIBRARIES})
  adasum_build_with_labels(${name} cluster)
  foreach(layout IN LISTS test_LAYOUTS)
    string(REGEX MATCH "^([^=]+)=(.+)$" matched "${layout}")
    set(nodes "${CMAKE_MATCH_2}")
    string(REPLACE " " ";" ranks "${nodes}")
    list(LENGTH ranks ranks)
    add_test(NAME ${name}.${CMAKE_MATCH_1} COMMAND "${PROJECT_SOURCE_DIR}/tests/cluster/on_nodes.sh" "${nodes}"
      ${ADASUM_MPI} ${test_TIMEOUT} $<TARGET_FILE:${name}>)
    math(EXPR timeout "${test_TIMEOUT} + 20")
    set_tests_properties(${name}.${CMAKE_MATCH_1} PROPERTIES LABELS cluster TIMEOUT ${timeout} PROCESSORS ${ranks}
      RESOURCE_LOCK adasum_cluster FIXTURES_REQUIRED adasum_cluster SKIP_RETURN_CODE 77
      ENVIRONMENT "ADASUM_CLUSTER_STATE=${PROJECT_BINARY_DIR}/cluster")
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

# The same, where the others are to go on when a rank dies: Open MPI 5 and later must be asked for that.
function(adasum_recovery_command variable ranks)
  adasum_mpi_command(command ${ranks} ${ARGN})
  if(mpi_version MATCHES "Open MPI\\) ([0-9]+)" AND CMAKE_MATCH_1 GREATER_EQUAL 5)
    list(INSERT command 1 --with-ft ulfm)
  endif()
  set(${variable} ${command} PARENT_SCOPE)
endfunction()

function(adasum_build_with_labels target)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()

function(adasum_quick label)
  cmake_parse_arguments(PARSE_ARGV 1 quick "" "" "TARGETS;TESTS")
  if(NOT label IN_LIST ADASUM_QUICK)
    return()
  endif()
  foreach(target IN LISTS quick_TARGETS)
    adasum_build_with_labels(${target} quick)
  endforeach()
  foreach(test IN LISTS quick_TESTS)
    set_property(TEST ${test} APPEND PROPERTY LABELS quick)
  endforeach()
endfunction()

macro(adasum_check_test_arguments name)
  if(test_UNPARSED_ARGUMENTS OR NOT test_SOURCES)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}(${name}): SOURCES missing, or unknown: ${test_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  adasum_timeout(test_TIMEOUT ${test_TIMEOUT})
endmacro()

set(ADASUM_TEST_PATIENCE 1 CACHE STRING "By what time limits of tests are multiplied: more on a machine with other work")

# Sets `variable` to so many seconds, or more where tests are slow: under a sanitizer, or on an emulated processor, where only
# a test that does not end takes so long.
function(adasum_timeout variable seconds)
  math(EXPR seconds "${ADASUM_TEST_PATIENCE} * ${seconds}")
  if(CMAKE_CROSSCOMPILING)
    math(EXPR seconds "30 * ${seconds}")
  elseif(ADASUM_SANITIZE)
    math(EXPR seconds "5 * ${seconds}")
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

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
