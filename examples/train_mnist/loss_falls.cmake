# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -P loss_falls.cmake -- COMMAND...
# Runs the training and passes if it exits 0 and its loss fell.
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 4 ${last})
  list(APPEND command "${CMAKE_ARGV${i}}")
endforeach()
execute_process(COMMAND ${command} OUTPUT_VARIABLE output RESULT_VARIABLE status)
message("${output}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}")
endif()
if(NOT output MATCHES "loss ([0-9.]+) -> ([0-9.]+)")
  message(FATAL_ERROR "no loss was printed")
endif()
# Guessing has a loss of ln 10 = 2.3.
if(NOT CMAKE_MATCH_2 LESS CMAKE_MATCH_1 OR NOT CMAKE_MATCH_2 LESS 1.5)
  message(FATAL_ERROR "the loss did not fall")
endif()
