# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -DPKG_CONFIG=... -DPREFIX=... -DLIBDIR=... -DPACKAGE=... -DVERSION=... -DCOMPILER=... -DSOURCE=... -DPROGRAM=...
#   -DRUN=... -P pkg_config.cmake
# Builds and runs a program with no more than pkg-config says about the installed library.
cmake_minimum_required(VERSION 3.25)

set(ENV{PKG_CONFIG_PATH} "${PREFIX}/share/pkgconfig:${PREFIX}/${LIBDIR}/pkgconfig")
execute_process(COMMAND "${PKG_CONFIG}" --modversion ${PACKAGE} OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config says that ${PACKAGE} is version ${version}, not ${VERSION}")
endif()

execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs ${PACKAGE} OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
# What is compiled once is static, and the C library is shared, however a program is linked.
execute_process(COMMAND "${PKG_CONFIG}" --static --cflags --libs ${PACKAGE} OUTPUT_VARIABLE static
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT static STREQUAL flags)
  message(FATAL_ERROR "with --static, pkg-config says '${static}', and without, '${flags}'")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND "${COMPILER}" -std=c++20 "${SOURCE}" ${flags} -o "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${RUN} COMMAND_ERROR_IS_FATAL ANY)
