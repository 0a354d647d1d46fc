# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   cmake -P same_output.cmake <program> <program>      fails unless both print the same, and something.
foreach(place IN ITEMS 3 4)
  execute_process(COMMAND "${CMAKE_ARGV${place}}" OUTPUT_VARIABLE output${place} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT output3 MATCHES "avx|baseline")
  message(FATAL_ERROR "${CMAKE_ARGV3} printed no results:\n${output3}")
endif()
if(NOT output3 STREQUAL output4)
  message(FATAL_ERROR "${CMAKE_ARGV3}:\n${output3}\n${CMAKE_ARGV4}:\n${output4}")
endif()
