# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P check_refusal.cmake -- FOLDER MESSAGE COMPILER ARGUMENTS...
# Fails unless the compiler, with these arguments, refuses each header in the folder by an error that matches the message,
# with at most one more error after it. So each header includes core/config.hpp before anything else. The standard library is
# hidden: a standard header that is included before core/config.hpp is an error, and clang, which goes on after a refusal, has
# less to read.
cmake_minimum_required(VERSION 3.25)

math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 6 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()
set(root "${CMAKE_ARGV4}")
set(expected "${CMAKE_ARGV5}")

set(ENV{LC_ALL} C)  # messages in English, with plain quotation marks
file(GLOB_RECURSE headers RELATIVE "${root}" "${root}/*.hpp")
set(wrong 0)
foreach(header IN LISTS headers)
  execute_process(COMMAND ${command} -nostdinc++ -fsyntax-only "-I${root}" -include "${header}" -x c++ /dev/null
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX MATCHALL "error: [^\n]*" errors "${output}")
  list(LENGTH errors number)
  list(POP_FRONT errors first)
  if(result EQUAL 0 OR number GREATER 2 OR NOT first MATCHES "${expected}")
    message(SEND_ERROR "${header}: ${number} errors, the first of which is not '${expected}':\n${first}")
    math(EXPR wrong "${wrong} + 1")
  endif()
endforeach()

list(LENGTH headers number)
if(number EQUAL 0)
  message(FATAL_ERROR "there is no header under ${root}")
elseif(wrong GREATER 0)
  message(FATAL_ERROR "${wrong} of ${number} headers are not refused as they should be; is core/config.hpp their first include?")
endif()
message("${number} headers are refused with one readable error")
