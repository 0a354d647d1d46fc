# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -DPROJECT=... -DFOLDER=... -DGENERATOR=... -DMAKE_PROGRAM=... -DCOMPILER=... -P check.cmake
# Installs a package with files for CPS, and looks for it.
cmake_minimum_required(VERSION 4.3)

file(REMOVE_RECURSE "${FOLDER}/prefix")
set(configure "${CMAKE_COMMAND}" --fresh -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}" -S "${PROJECT}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}")
execute_process(COMMAND ${configure} -B "${FOLDER}/made" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${FOLDER}/made" --prefix "${FOLDER}/prefix" OUTPUT_QUIET
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${configure} -B "${FOLDER}/found" -DFIND=ON "-DCMAKE_PREFIX_PATH=${FOLDER}/prefix"
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
if(result EQUAL 0)
  message(FATAL_ERROR "CMake ${CMAKE_VERSION} finds Threads for a package with files for CPS. Try install(PACKAGE_INFO) for "
    "adasum's targets (cmake/), and mend docs/cmake.md")
elseif(NOT said MATCHES "could not find Threads")
  message(FATAL_ERROR "${said}")
endif()
