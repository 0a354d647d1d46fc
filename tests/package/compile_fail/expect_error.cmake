# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P expect_error.cmake -- COMPILER ARGUMENTS... SOURCE
# Fails unless the compiler refuses the source with the message that the source expects.
cmake_minimum_required(VERSION 3.25)

math(EXPR last "${CMAKE_ARGC} - 1")
set(source "${CMAKE_ARGV${last}}")
foreach(i RANGE 4 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()

file(STRINGS "${source}" expected REGEX "^// expect: ")
string(REGEX REPLACE "^// expect: " "" expected "${expected}")
if(expected STREQUAL "")
  message(FATAL_ERROR "${source} has no line `// expect: <regular expression>`")
endif()

set(ENV{LC_ALL} C)  # messages in English, with plain quotation marks
execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${source} compiles, but it should not")
elseif(NOT output MATCHES "${expected}")
  message(FATAL_ERROR "${source} does not compile, but the message does not match '${expected}':\n${output}")
endif()
