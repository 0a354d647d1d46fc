# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P expect_error.cmake -- COMPILER ARGUMENTS... SOURCE
# Fails unless the compiler refuses the source with the message that the source expects, `// expect: <regular expression>`,
# or `// expect only: …` where there must be no other error. Of several such lines, each must match.
cmake_minimum_required(VERSION 3.25)

math(EXPR last "${CMAKE_ARGC} - 1")
set(source "${CMAKE_ARGV${last}}")
foreach(i RANGE 4 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()

file(STRINGS "${source}" lines REGEX "^// expect( only)?: ")
if(lines STREQUAL "")
  message(FATAL_ERROR "${source} has no line `// expect: <regular expression>`")
endif()

set(ENV{LC_ALL} C)  # messages in English, with plain quotation marks
execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${source} compiles, but it should not")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^// expect( only)?: " "" expected "${line}")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${source} does not compile, but the message does not match '${expected}':\n${output}")
  endif()
endforeach()

string(REGEX MATCHALL "[^a-z]error: " errors "${output}")
list(LENGTH errors count)
if(lines MATCHES "^// expect only: " AND NOT count EQUAL 1)
  message(FATAL_ERROR "${source} has ${count} errors, where one line should say it all:\n${output}")
endif()
