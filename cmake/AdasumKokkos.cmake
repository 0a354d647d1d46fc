# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds Kokkos, if there is one, and offers it as the target adasum_kokkos_library: an enclosing project's Kokkos::kokkos
# first, then a package that works, then header and library by path (Debian's packages name folders that do not exist),
# then its sources, if FETCHCONTENT_SOURCE_DIR_KOKKOS says where they are or ADASUM_FETCH_KOKKOS allows to fetch them.
# Installed too, for consumers that ask for the component kokkos.
if(TARGET adasum_kokkos_library)
  return()
endif()
option(ADASUM_FETCH_KOKKOS "Fetch the sources of Kokkos where none is installed" OFF)

set(adasum_kokkos_from "")
if(TARGET Kokkos::kokkos)
  set(adasum_kokkos_from "the enclosing project")
endif()

if(NOT adasum_kokkos_from)
  # Not by find_package: some packages change the project's settings, or end its configuration.
  find_path(ADASUM_KOKKOS_PACKAGE KokkosConfig.cmake HINTS "${Kokkos_DIR}" ENV Kokkos_DIR ENV Kokkos_ROOT "${Kokkos_ROOT}"
    PATH_SUFFIXES cmake/Kokkos lib/cmake/Kokkos lib64/cmake/Kokkos lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Kokkos)
  mark_as_advanced(ADASUM_KOKKOS_PACKAGE)
  if(ADASUM_KOKKOS_PACKAGE AND NOT DEFINED ADASUM_KOKKOS_PACKAGE_WORKS)
    # By a process of its own: what is wrong in a package would end this configuration, even inside try_compile.
    set(probe "${CMAKE_BINARY_DIR}/kokkos_package_works")
    execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/kokkos_package_works" -B "${probe}"
        "-DKokkos_DIR=${ADASUM_KOKKOS_PACKAGE}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" -Wno-dev
      RESULT_VARIABLE adasum_probe_failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT adasum_probe_failed)
      execute_process(COMMAND "${CMAKE_COMMAND}" --build "${probe}" RESULT_VARIABLE adasum_probe_failed OUTPUT_QUIET ERROR_QUIET)
    endif()
    if(adasum_probe_failed)
      set(ADASUM_KOKKOS_PACKAGE_WORKS FALSE CACHE INTERNAL "")
    else()
      set(ADASUM_KOKKOS_PACKAGE_WORKS TRUE CACHE INTERNAL "")
    endif()
  endif()
  if(ADASUM_KOKKOS_PACKAGE AND ADASUM_KOKKOS_PACKAGE_WORKS)
    set(Kokkos_DIR "${ADASUM_KOKKOS_PACKAGE}")
    find_package(Kokkos CONFIG REQUIRED GLOBAL)
    set(adasum_kokkos_from "the package in ${Kokkos_DIR}")
  endif()
endif()

if(NOT adasum_kokkos_from)
  find_path(ADASUM_KOKKOS_HEADERS Kokkos_Core.hpp PATH_SUFFIXES kokkos trilinos)
  find_library(ADASUM_KOKKOS_LIBRARY NAMES kokkoscore trilinos_kokkoscore)
  mark_as_advanced(ADASUM_KOKKOS_HEADERS ADASUM_KOKKOS_LIBRARY)
  if(ADASUM_KOKKOS_HEADERS AND ADASUM_KOKKOS_LIBRARY)
    # Which backends it was built with decides which flags its headers ask for.
    file(STRINGS "${ADASUM_KOKKOS_HEADERS}/KokkosCore_config.h" adasum_kokkos_openmp REGEX "^#define KOKKOS_ENABLE_OPENMP")
    add_library(adasum_kokkos_library INTERFACE IMPORTED GLOBAL)
    target_include_directories(adasum_kokkos_library INTERFACE "${ADASUM_KOKKOS_HEADERS}")
    target_link_libraries(adasum_kokkos_library INTERFACE "${ADASUM_KOKKOS_LIBRARY}" ${CMAKE_DL_LIBS})
    if(adasum_kokkos_openmp)
      find_package(OpenMP REQUIRED GLOBAL COMPONENTS CXX)
      target_link_libraries(adasum_kokkos_library INTERFACE OpenMP::OpenMP_CXX)
    endif()
    set(adasum_kokkos_from "${ADASUM_KOKKOS_LIBRARY}")
  endif()
endif()

if(NOT adasum_kokkos_from AND (ADASUM_FETCH_KOKKOS OR FETCHCONTENT_SOURCE_DIR_KOKKOS))
  include(FetchContent)
  FetchContent_Declare(kokkos GIT_REPOSITORY https://github.com/kokkos/kokkos.git GIT_TAG 4.7.01 GIT_SHALLOW TRUE)
  FetchContent_MakeAvailable(kokkos)
  set(adasum_kokkos_from "its sources")
endif()

if(adasum_kokkos_from)
  if(NOT TARGET adasum_kokkos_library)
    add_library(adasum_kokkos_library INTERFACE IMPORTED GLOBAL)
    target_link_libraries(adasum_kokkos_library INTERFACE Kokkos::kokkos)
  endif()
  message(STATUS "adasum: Kokkos from ${adasum_kokkos_from}")
endif()
