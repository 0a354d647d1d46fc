# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds NCCL by header and library, which it comes without a CMake package for, and offers it as adasum_nccl_library.
# Installed too, for consumers that ask for the component nccl.
if(NOT TARGET adasum_nccl_library)
  find_path(ADASUM_NCCL_HEADERS nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(ADASUM_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(ADASUM_NCCL_HEADERS ADASUM_NCCL_LIBRARY)
  if(ADASUM_NCCL_HEADERS AND ADASUM_NCCL_LIBRARY)
    add_library(adasum_nccl_library INTERFACE IMPORTED GLOBAL)
    target_include_directories(adasum_nccl_library INTERFACE "${ADASUM_NCCL_HEADERS}")
    target_link_libraries(adasum_nccl_library INTERFACE "${ADASUM_NCCL_LIBRARY}")
  endif()
endif()
