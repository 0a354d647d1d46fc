# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# find_package(adasum) offers adasum::adasum; COMPONENTS mpi, eigen and kokkos add adasum::mpi, adasum::eigen
# and adasum::kokkos.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_folder "${CMAKE_INSTALL_DATADIR}/cmake/adasum")

install(TARGETS adasum EXPORT adasum-targets FILE_SET HEADERS)
install(TARGETS adasum_mpi EXPORT adasum-mpi-targets)
install(TARGETS adasum_eigen EXPORT adasum-eigen-targets)
install(TARGETS adasum_kokkos EXPORT adasum-kokkos-targets)
install(EXPORT adasum-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
install(EXPORT adasum-mpi-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
install(EXPORT adasum-eigen-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
install(EXPORT adasum-kokkos-targets NAMESPACE adasum:: DESTINATION "${package_folder}")
install(FILES cmake/AdasumKokkos.cmake DESTINATION "${package_folder}")
install(DIRECTORY cmake/kokkos_package_works DESTINATION "${package_folder}")

configure_package_config_file(cmake/adasum-config.cmake.in adasum-config.cmake INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file(adasum-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/adasum-config.cmake" "${PROJECT_BINARY_DIR}/adasum-config-version.cmake"
  DESTINATION "${package_folder}")
