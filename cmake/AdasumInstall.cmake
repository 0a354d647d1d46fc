# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# find_package(adasum) offers adasum::adasum; COMPONENTS mpi, eigen, kokkos, cuda and nccl add adasum::mpi, adasum::eigen and
# so on.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_folder "${CMAKE_INSTALL_DATADIR}/cmake/adasum")

install(TARGETS adasum EXPORT adasum-targets FILE_SET HEADERS)
install(EXPORT adasum-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
foreach(component IN ITEMS mpi eigen kokkos cuda nccl)
  install(TARGETS adasum_${component} EXPORT adasum-${component}-targets)
  install(EXPORT adasum-${component}-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
endforeach()
install(FILES cmake/AdasumKokkos.cmake cmake/AdasumNCCL.cmake DESTINATION "${package_folder}")
install(DIRECTORY cmake/kokkos_package_works DESTINATION "${package_folder}")

configure_package_config_file(cmake/adasum-config.cmake.in adasum-config.cmake INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file(adasum-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/adasum-config.cmake" "${PROJECT_BINARY_DIR}/adasum-config-version.cmake"
  DESTINATION "${package_folder}")
