# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# With ADASUM_CUDA, nvcc compiles what needs it: tests for devices, examples, the benchmark. The target adasum::cuda itself is
# for any project whose CUDA compiler is enabled; adasum::nccl if NCCL is found.
option(ADASUM_CUDA "Build what needs a CUDA compiler" OFF)

add_library(adasum_cuda INTERFACE)
set_target_properties(adasum_cuda PROPERTIES EXPORT_NAME cuda)
target_link_libraries(adasum_cuda INTERFACE adasum CUDA::cudart)
# CMake before 3.26 does not know how to ask this nvcc for C++20, so the flag is spelled out.
target_compile_options(adasum_cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")

add_library(adasum_nccl INTERFACE)
set_target_properties(adasum_nccl PROPERTIES EXPORT_NAME nccl)
target_link_libraries(adasum_nccl INTERFACE adasum_cuda adasum_nccl_library)

if(ADASUM_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED GLOBAL)
  include("${CMAKE_CURRENT_LIST_DIR}/AdasumNCCL.cmake")
  add_library(adasum::cuda ALIAS adasum_cuda)
  if(TARGET adasum_nccl_library)
    add_library(adasum::nccl ALIAS adasum_nccl)
  endif()
endif()
