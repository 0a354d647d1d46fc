# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# adasum::c is the shared library libadasum, <adasum/adasum.h>, for the MPI of this build: for C, and whatever calls C.
# adasum::fortran adds the module of src/fortran/, where there is a Fortran compiler. Built where something links them, or where
# ADASUM_C or ADASUM_FORTRAN asks for it; then they are installed, too, as the components `c` and `fortran`.
option(ADASUM_C "Build the C library adasum::c, and install it with the headers (needs MPI)" OFF)
option(ADASUM_FORTRAN "Build the Fortran module adasum::fortran, and install it; implies ADASUM_C" OFF)
if(ADASUM_FORTRAN)
  set(ADASUM_C ON)
endif()

include(GNUInstallDirs)

# What needs no MPI, for any communicator: Python's module for PyTorch uses it, too.
add_library(adasum_calls STATIC EXCLUDE_FROM_ALL
  src/c/arguments.cpp
  src/c/calls.cpp)
target_compile_definitions(adasum_calls PRIVATE ADASUM_WITHOUT_MPI)
target_link_libraries(adasum_calls PUBLIC adasum adasum_compiled)
if(TARGET adasum::eigen)
  set_property(SOURCE src/c/arguments.cpp src/c/local.cpp APPEND PROPERTY COMPILE_DEFINITIONS ADASUM_C_WITH_EIGEN)
  target_link_libraries(adasum_calls PRIVATE adasum_eigen)
endif()

# Options of everything in src/c/ and of what is linked with it. What is loaded once stays: MPI calls back functions of these
# libraries as late as in MPI_Finalize, when a program may have unloaded them.
function(adasum_hide_symbols target)
  if(NOT APPLE)
    target_link_options(${target} PRIVATE "LINKER:-z,nodelete")
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD OFF)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -O2 -fno-fast-math)
endfunction()
adasum_hide_symbols(adasum_calls)

# What adasum_build_information says; of the last time that CMake ran, which it does after each commit.
if(EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE adasum_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND git rev-parse --git-path logs/HEAD WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${log}" log BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  if(failed EQUAL 0 AND EXISTS "${log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log}")
    set_property(SOURCE src/c/local.cpp APPEND PROPERTY COMPILE_DEFINITIONS "ADASUM_COMMIT=\"${adasum_commit}\"")
  endif()
endif()

# The functions of C that need no MPI, for who has none.
add_library(adasum_c_without_mpi OBJECT EXCLUDE_FROM_ALL src/c/errors.cpp src/c/local.cpp src/c/reports.cpp)
target_compile_definitions(adasum_c_without_mpi PUBLIC ADASUM_WITHOUT_MPI)
target_link_libraries(adasum_c_without_mpi PUBLIC adasum_calls)
adasum_hide_symbols(adasum_c_without_mpi)

if(NOT TARGET adasum::mpi)
  if(ADASUM_C)
    message(FATAL_ERROR "adasum: ADASUM_C and ADASUM_FORTRAN need MPI, and there is none to be found")
  endif()
  return()
endif()

# <adasum/adasum.h> needs MPI for the language of whoever includes it; the library itself is C++.
foreach(language IN ITEMS C Fortran)
  string(TOUPPER ${language} name)
  if(NOT ADASUM_${name})
    continue()
  endif()
  include(CheckLanguage)
  check_language(${language})
  if(NOT CMAKE_${language}_COMPILER)
    message(STATUS "adasum: there is no compiler for ${language}")
    continue()
  endif()
  enable_language(${language})
  if(ADASUM_MPI)
    set(wrapper_of_C mpicc)
    set(wrapper_of_Fortran mpifort)
    string(REGEX REPLACE "mpicxx([^/]*)$" "${wrapper_of_${language}}\\1" compiler "${ADASUM_MPI_COMPILER}")
    set(MPI_${language}_COMPILER "${compiler}" CACHE FILEPATH "MPI compiler for ${language}" FORCE)
  endif()
  find_package(MPI QUIET GLOBAL COMPONENTS ${language})
endforeach()
add_library(adasum_c_mpi INTERFACE IMPORTED GLOBAL)
if(TARGET MPI::MPI_C)
  target_link_libraries(adasum_c_mpi INTERFACE MPI::MPI_C)
else()
  target_link_libraries(adasum_c_mpi INTERFACE MPI::MPI_CXX)
endif()

set(adasum_c_all "")
if(NOT ADASUM_C)
  set(adasum_c_all EXCLUDE_FROM_ALL)
endif()
add_library(adasum_c_objects OBJECT EXCLUDE_FROM_ALL
  src/c/among_ranks.cpp
  src/c/communicators.cpp
  src/c/errors.cpp
  src/c/fortran.cpp
  src/c/local.cpp
  src/c/plans.cpp
  src/c/reports.cpp)
adasum_hide_symbols(adasum_c_objects)
target_link_libraries(adasum_c_objects PUBLIC adasum_calls adasum_mpi)
add_library(adasum_c SHARED ${adasum_c_all} $<TARGET_OBJECTS:adasum_c_objects>)
add_library(adasum::c ALIAS adasum_c)
adasum_hide_symbols(adasum_c)
# Which functions there are changes with the second number of the version, until that is 1.0.
set_target_properties(adasum_c PROPERTIES EXPORT_NAME c OUTPUT_NAME adasum
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(adasum_c PRIVATE adasum_c_objects INTERFACE adasum_c_mpi)
target_include_directories(adasum_c INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
if(NOT APPLE)
  set(map "${PROJECT_SOURCE_DIR}/src/c/libadasum.map")
  target_link_options(adasum_c PRIVATE "LINKER:--version-script=${map}" "LINKER:--no-undefined")
  set_property(TARGET adasum_c APPEND PROPERTY LINK_DEPENDS "${map}")
endif()

# The module `adasum`, whose file other compilers than this one cannot read.
if(ADASUM_FORTRAN AND CMAKE_Fortran_COMPILER AND MPI_Fortran_HAVE_F08_MODULE)
  set(adasum_fortran_modules "${PROJECT_BINARY_DIR}/fortran")
  add_library(adasum_fortran SHARED
    src/fortran/adasum.f90
    src/fortran/adasum_c.f90
    src/fortran/adasum_real32.f90
    src/fortran/adasum_real64.f90
    src/fortran/adasum_reports.f90)
  add_library(adasum::fortran ALIAS adasum_fortran)
  set_target_properties(adasum_fortran PROPERTIES EXPORT_NAME fortran INSTALL_RPATH "$ORIGIN"  # where libadasum is
    Fortran_MODULE_DIRECTORY "${adasum_fortran_modules}"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(adasum_fortran PUBLIC adasum_c MPI::MPI_Fortran)
  target_include_directories(adasum_fortran INTERFACE
    "$<BUILD_INTERFACE:${adasum_fortran_modules}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/adasum-fortran>")
elseif(ADASUM_FORTRAN)
  message(STATUS "adasum: no Fortran compiler whose MPI has the module mpi_f08, so no adasum::fortran")
endif()
