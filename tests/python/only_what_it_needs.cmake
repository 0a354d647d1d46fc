# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D SOURCE=… -D FOLDER=… -D PYTHON=… -P only_what_it_needs.cmake
# Configures as `pip install` does, with what pyproject.toml defines: no package is looked for that Python's does not need.
# The same file is what that configuration includes first, to see which packages it looks for.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${SOURCE}/pyproject.toml" settings)
  string(REGEX MATCH "\n\\[tool\\.scikit-build\\.cmake\\.define\\]\n([^[]*)" settings "${settings}")
  string(REGEX MATCHALL "[A-Z_]+ = [a-z]+" settings "${CMAKE_MATCH_1}")
  if(NOT settings)
    message(FATAL_ERROR "pyproject.toml defines nothing for CMake")
  endif()
  list(TRANSFORM settings REPLACE " = " "=")
  list(TRANSFORM settings PREPEND "-D")
  file(REMOVE_RECURSE "${FOLDER}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${FOLDER}" ${settings} "-DPython_EXECUTABLE=${PYTHON}"
    "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=${CMAKE_CURRENT_LIST_FILE}" COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${FOLDER}")
  return()
endif()

macro(adasum_note_package method package)
  if(NOT "${package}" MATCHES "^(Threads|MPI|PkgConfig|Eigen3|Python)$")  # PkgConfig: for MPI
    message(SEND_ERROR "The package ${package} was looked for, which the Python package does not need")
  endif()
endmacro()
cmake_language(SET_DEPENDENCY_PROVIDER adasum_note_package SUPPORTED_METHODS FIND_PACKAGE)
