# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds SOURCE with MPI's compiler wrapper and what pkg-config says about PACKAGE in PREFIX, and runs it (RUN, its words
# separated by |).
cmake_minimum_required(VERSION 3.25)
set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig")
execute_process(COMMAND "${PKG_CONFIG}" --modversion ${PACKAGE} OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config names version ${version} of ${PACKAGE}, not ${VERSION}")
endif()
execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs ${PACKAGE} OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
# What is compiled once is static, and the C library is shared, however a program is linked.
execute_process(COMMAND "${PKG_CONFIG}" --static --cflags --libs ${PACKAGE} OUTPUT_VARIABLE static
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT static STREQUAL flags)
  message(FATAL_ERROR "with --static, pkg-config says '${static}', and without, '${flags}'")
endif()
execute_process(COMMAND "${PKG_CONFIG}" --variable=libdir ${PACKAGE} OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND "${COMPILER}" "${SOURCE}" ${flags} "-Wl,-rpath,${libdir}" -o "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "|" ";" run "${RUN}")
execute_process(COMMAND ${run} COMMAND_ERROR_IS_FATAL ANY)
