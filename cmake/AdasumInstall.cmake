# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# find_package(adasum) offers adasum::adasum; COMPONENTS mpi, eigen, kokkos, torch, cuda, nccl, compiled, compiled_mpi, c and
# fortran add adasum::mpi, adasum::eigen and so on; pkg-config knows adasum (the headers), adasum-compiled,
# adasum-compiled-mpi, adasum-c and adasum-fortran. Installing takes CMake 3.25, as building does; a project that uses what is
# installed takes CMake 3.15.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_folder "${CMAKE_INSTALL_DATADIR}/cmake/adasum")

# What packages are made of (cmake --install --component, cpack): `development`, for those who compile; `c` and `fortran`, what
# their programs load; `license`.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# In the build folder, too: for projects around this one that export targets of their own from there.
function(adasum_export set)
  install(EXPORT ${set} NAMESPACE adasum:: DESTINATION "${package_folder}")
  export(EXPORT ${set} NAMESPACE adasum:: FILE "${PROJECT_BINARY_DIR}/${set}.cmake")
endfunction()

# INCLUDES for projects with a CMake before 3.23, which does not read file sets.
install(TARGETS adasum EXPORT adasum-targets FILE_SET HEADERS INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
adasum_export(adasum-targets)
foreach(component IN ITEMS mpi eigen kokkos torch cuda nccl)
  set(headers "")
  if(component STREQUAL "torch")
    set(headers FILE_SET HEADERS INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  install(TARGETS adasum_${component} EXPORT adasum-${component}-targets ${headers})
  adasum_export(adasum-${component}-targets)
endforeach()
foreach(component IN ITEMS compiled compiled_mpi)
  if(ADASUM_INSTALL_COMPILED AND TARGET adasum_${component})
    set_target_properties(adasum_${component} PROPERTIES EXCLUDE_FROM_ALL OFF)
    install(TARGETS adasum_${component} EXPORT adasum-${component}-targets)
    adasum_export(adasum-${component}-targets)
  endif()
endforeach()
if(ADASUM_C)
  install(TARGETS adasum_c EXPORT adasum-c-targets LIBRARY COMPONENT c NAMELINK_COMPONENT development)
  adasum_export(adasum-c-targets)
  install(FILES include/adasum/adasum.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/adasum")
endif()
if(TARGET adasum_fortran)
  install(TARGETS adasum_fortran EXPORT adasum-fortran-targets LIBRARY COMPONENT fortran NAMELINK_COMPONENT development)
  adasum_export(adasum-fortran-targets)
  install(DIRECTORY "${adasum_fortran_modules}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/adasum-fortran"
    FILES_MATCHING PATTERN "*.mod")
endif()
install(FILES cmake/AdasumKokkos.cmake cmake/AdasumNCCL.cmake cmake/AdasumTorch.cmake DESTINATION "${package_folder}")
install(DIRECTORY cmake/kokkos_package_works DESTINATION "${package_folder}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT license)

configure_package_config_file(cmake/adasum-config.cmake.in adasum-config.cmake INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file(adasum-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/adasum-config.cmake" "${PROJECT_BINARY_DIR}/adasum-config-version.cmake"
  DESTINATION "${package_folder}")

# Relative to the file itself, so that the installed folder can be moved, and `cmake --install --prefix` is followed; for one
# processor where it is about a library of one. What MPI itself needs is not
# in them: its compiler wrapper knows what to add, and its name in pkg-config differs between implementations.
foreach(folder IN ITEMS INCLUDEDIR LIBDIR)
  string(TOLOWER ${folder} name)
  set(adasum_pc_${name} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${adasum_pc_${name}}")
    string(PREPEND adasum_pc_${name} "\${prefix}/")
  endif()
endforeach()
function(adasum_install_pc package folder)
  if(IS_ABSOLUTE "${folder}")
    set(adasum_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  else()
    string(REGEX REPLACE "[^/]+" ".." adasum_pc_prefix "${folder}")
    string(PREPEND adasum_pc_prefix "\${pcfiledir}/")
  endif()
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${package}.pc" DESTINATION "${folder}")
endfunction()
adasum_install_pc(adasum "${CMAKE_INSTALL_DATADIR}/pkgconfig")
if(ADASUM_INSTALL_COMPILED)
  adasum_install_pc(adasum-compiled "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  if(TARGET adasum_compiled_mpi)
    adasum_install_pc(adasum-compiled-mpi "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  endif()
endif()
if(ADASUM_C)
  adasum_install_pc(adasum-c "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
if(TARGET adasum_fortran)
  adasum_install_pc(adasum-fortran "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
