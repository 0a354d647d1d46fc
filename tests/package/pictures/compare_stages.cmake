# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -DPROGRAM=PROGRAM -DDRAWN=FILE -P compare_stages.cmake
# Fails if the program prints anything but what is in the file.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ "${DRAWN}" drawn)
if(NOT printed STREQUAL drawn)
  message(FATAL_ERROR "The schedules are not those of ${DRAWN} any more: scripts/pictures draws them anew.\n${printed}")
endif()
