# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# `cpack -G DEB` in a build folder that was configured with -DCMAKE_INSTALL_PREFIX=/usr makes
#
#   libadasum-dev           headers, CMake and pkg-config files, adasum::compiled and adasum::compiled_mpi; what links the
#                           libraries below, where there are any
#   libadasum0.1            with ADASUM_C: the C library; its name has the numbers of its soname
#   libadasum-fortran0.1    with ADASUM_FORTRAN: the library of the Fortran module
#
# and `cpack -G TGZ` one archive of all. The maintainer is named as by Debian's own tools, by DEBFULLNAME and DEBEMAIL.

set(CPACK_PACKAGE_NAME adasum)
set(CPACK_PACKAGE_VENDOR "The adasum authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The adasum authors")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

set(adasum_so_version "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(adasum_deb_description "Adaptive summation adds gradients where they are orthogonal and averages\n\
them where they are parallel, so that training keeps its accuracy as workers\nare added.\n\
.\nThis package has what programs in ")

set(adasum_deb_development libadasum-dev)
set(adasum_deb_depends "")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${adasum_deb_development})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libopenmpi-dev | libmpich-dev, libeigen3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${adasum_deb_description}C++ are compiled with.")
if(NOT ADASUM_C AND NOT ADASUM_INSTALL_COMPILED)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_ARCHITECTURE all)
endif()

if(ADASUM_C)
  list(APPEND CPACK_COMPONENTS_ALL c)
  set(adasum_deb_c libadasum${adasum_so_version})
  set(CPACK_DEBIAN_C_PACKAGE_NAME ${adasum_deb_c})
  set(CPACK_DEBIAN_C_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_C_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_C_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/debian/triggers")
  set(CPACK_DEBIAN_C_DESCRIPTION "${adasum_deb_description}C load.")
  list(APPEND adasum_deb_depends "${adasum_deb_c} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${adasum_deb_description}C++ and C are\ncompiled with.")
endif()

# adasum::compiled_mpi and the header of C need the MPI for which they were built: its header, and its library.
if(ADASUM_C OR (ADASUM_INSTALL_COMPILED AND TARGET adasum_compiled_mpi))
  find_program(ADASUM_DPKG_QUERY dpkg-query)
  find_file(ADASUM_MPI_HEADER mpi.h HINTS ${MPI_CXX_INCLUDE_DIRS} NO_DEFAULT_PATH)
  mark_as_advanced(ADASUM_DPKG_QUERY ADASUM_MPI_HEADER)
  if(ADASUM_DPKG_QUERY AND ADASUM_MPI_HEADER)
    file(REAL_PATH "${ADASUM_MPI_HEADER}" header)
    execute_process(COMMAND "${ADASUM_DPKG_QUERY}" --search "${header}" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(owner MATCHES "^([^:, \n]+)")
      list(APPEND adasum_deb_depends ${CMAKE_MATCH_1})
      set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS libeigen3-dev)
    endif()
  endif()
endif()
if(TARGET adasum_fortran)
  list(APPEND CPACK_COMPONENTS_ALL fortran)
  set(adasum_deb_fortran libadasum-fortran${adasum_so_version})
  set(CPACK_DEBIAN_FORTRAN_PACKAGE_NAME ${adasum_deb_fortran})
  set(CPACK_DEBIAN_FORTRAN_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_FORTRAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_FORTRAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/debian/triggers")
  set(CPACK_DEBIAN_FORTRAN_PACKAGE_DEPENDS "${adasum_deb_c} (= ${PROJECT_VERSION})")
  # No package that is installed has the C library yet.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
  set(CPACK_DEBIAN_FORTRAN_DESCRIPTION "${adasum_deb_description}Fortran load.")
  list(APPEND adasum_deb_depends "${adasum_deb_fortran} (= ${PROJECT_VERSION})")
endif()
list(JOIN adasum_deb_depends ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

# What Debian wants beside the files: only in packages, not in other installations.
find_program(ADASUM_GZIP gzip)
mark_as_advanced(ADASUM_GZIP)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where that is set
set(changelog "${PROJECT_BINARY_DIR}/debian/changelog")
file(WRITE "${changelog}" "adasum (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Version ${PROJECT_VERSION}.\n\n\
 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
if(ADASUM_GZIP)
  execute_process(COMMAND "${ADASUM_GZIP}" -9 --no-name --force "${changelog}" COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND changelog .gz)
endif()
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(folder "${CMAKE_INSTALL_DATADIR}/doc/${adasum_deb_${component}}")
  install(FILES packaging/debian/copyright DESTINATION "${folder}" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${changelog}" DESTINATION "${folder}" COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
