# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_umbrella.cmake FOLDER
# Follows the #include lines from adasum.hpp and mpi.hpp: what few programs need is not among what they include.
cmake_minimum_required(VERSION 3.25)

set(apart "^(testing|machine_file|measure_machine)\\.hpp$|^testing/|/(machine_times|kernel_times)\\.hpp$")

math(EXPR last "${CMAKE_ARGC} - 1")
file(REAL_PATH "${CMAKE_ARGV${last}}" root)
set(seen adasum.hpp)
if(EXISTS "${root}/mpi.hpp")
  list(APPEND seen mpi.hpp)
endif()
set(at 0)
list(LENGTH seen count)
while(at LESS count)
  list(GET seen ${at} header)
  math(EXPR at "${at} + 1")
  cmake_path(GET header PARENT_PATH folder)
  file(STRINGS "${root}/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "\"([^\"]+)\"" ignored "${line}")
    cmake_path(SET target NORMALIZE "${folder}/${CMAKE_MATCH_1}")
    string(REGEX REPLACE "^/" "" target "${target}")
    if(target MATCHES "${apart}")
      message(FATAL_ERROR "adasum.hpp includes ${target}, by ${header}: that is a header of its own")
    endif()
    if(NOT target IN_LIST seen)
      list(APPEND seen "${target}")
    endif()
  endforeach()
  list(LENGTH seen count)
endwhile()

if(count LESS 3)
  message(FATAL_ERROR "no #include lines in ${root}/adasum.hpp")
endif()
message("adasum.hpp and mpi.hpp include ${count} headers, and none that stands apart")
