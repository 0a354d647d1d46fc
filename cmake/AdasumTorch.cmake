# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds libtorch with its distributed part, if there is one, and offers it as the target adasum_torch_library. Headers are
# given as those of the system: they are full of warnings. Installed too, for consumers that ask for the component torch.
if(NOT TARGET adasum_torch_library)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  find_package(Torch QUIET)
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  if(Torch_FOUND)
    find_path(ADASUM_C10D_HEADERS torch/csrc/distributed/c10d/ProcessGroup.hpp HINTS ${TORCH_INCLUDE_DIRS})
    mark_as_advanced(ADASUM_C10D_HEADERS)
    if(ADASUM_C10D_HEADERS)
      add_library(adasum_torch_library INTERFACE IMPORTED GLOBAL)
      set(folders ${TORCH_INCLUDE_DIRS})
      list(REMOVE_ITEM folders /usr/include)  # named again as the system's, it is searched in the wrong order
      target_include_directories(adasum_torch_library SYSTEM INTERFACE ${folders})
      separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
      target_compile_options(adasum_torch_library INTERFACE ${flags})
      target_link_libraries(adasum_torch_library INTERFACE ${TORCH_LIBRARIES})
    endif()
  endif()
endif()
