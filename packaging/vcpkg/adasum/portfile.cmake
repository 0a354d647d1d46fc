# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The sources are those of the clone that this file lies in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options
  FEATURES
    c        ADASUM_C
    compiled ADASUM_INSTALL_COMPILED
    eigen    CMAKE_REQUIRE_FIND_PACKAGE_Eigen3
    mpi      CMAKE_REQUIRE_FIND_PACKAGE_MPI
  INVERTED_FEATURES
    eigen    CMAKE_DISABLE_FIND_PACKAGE_Eigen3
    mpi      CMAKE_DISABLE_FIND_PACKAGE_MPI
)

if(NOT "c" IN_LIST FEATURES AND NOT "compiled" IN_LIST FEATURES)
  set(VCPKG_BUILD_TYPE release)  # nothing but headers
endif()

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${options}
    -DADASUM_BUILD_TESTS=OFF
    -DADASUM_BUILD_EXAMPLES=OFF
    -DADASUM_BUILD_BENCHMARKS=OFF
    -DADASUM_KOKKOS=OFF
    -DADASUM_TORCH=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/adasum)
foreach(folder IN ITEMS "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/debug")  # where vcpkg wants files with libraries
  if(EXISTS "${folder}/share/pkgconfig")
    file(MAKE_DIRECTORY "${folder}/lib/pkgconfig")
    file(RENAME "${folder}/share/pkgconfig/adasum.pc" "${folder}/lib/pkgconfig/adasum.pc")
    file(REMOVE_RECURSE "${folder}/share/pkgconfig")
  endif()
endforeach()
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
