# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_sizes.cmake LINES FOLDER...
# Fails if a source file in one of the folders has more than so many lines.
cmake_minimum_required(VERSION 3.25)

set(limit "${CMAKE_ARGV3}")
math(EXPR last "${CMAKE_ARGC} - 1")
set(files "")
foreach(i RANGE 4 ${last})
  foreach(suffix IN ITEMS hpp h cuh cpp cu py cmake txt)
    file(GLOB_RECURSE found "${CMAKE_ARGV${i}}/*.${suffix}")
    list(APPEND files ${found})
  endforeach()
endforeach()

set(too_long 0)
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(REGEX REPLACE "[^\n]" "" newlines "${text}")
  string(LENGTH "${newlines}" lines)
  if(lines GREATER limit)
    message("${file} has ${lines} lines, more than ${limit}")
    math(EXPR too_long "${too_long} + 1")
  endif()
endforeach()

list(LENGTH files number)
if(number EQUAL 0)
  message(FATAL_ERROR "there is no source file in the folders")
elseif(too_long GREATER 0)
  message(FATAL_ERROR "${too_long} of ${number} files have more than ${limit} lines")
endif()
message("${number} files have at most ${limit} lines")
