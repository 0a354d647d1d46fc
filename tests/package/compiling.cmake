# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Tests that run the compiler.

# The folders of the library and of what it uses, as far as that is here.
set(adasum_include_flags "-I${PROJECT_SOURCE_DIR}/include")
if(TARGET adasum::mpi)
  get_target_property(mpi_folders MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(mpi_definitions MPI::MPI_CXX INTERFACE_COMPILE_DEFINITIONS)
  list(TRANSFORM mpi_folders PREPEND "-isystem")
  list(TRANSFORM mpi_definitions PREPEND "-D")
  foreach(found IN ITEMS mpi_folders mpi_definitions)
    if(${found})
      list(APPEND adasum_include_flags ${${found}})
    endif()
  endforeach()
endif()

if(TARGET adasum::eigen)
  get_target_property(eigen_folders Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  list(TRANSFORM eigen_folders PREPEND "-isystem")
  list(APPEND adasum_include_flags ${eigen_folders})
endif()

set(openmp_flags "")
if(TARGET adasum_kokkos_library)
  get_target_property(kokkos_folders adasum_kokkos_library INTERFACE_INCLUDE_DIRECTORIES)
  if(kokkos_folders)
    list(TRANSFORM kokkos_folders PREPEND "-isystem")
    list(APPEND adasum_include_flags ${kokkos_folders})
  endif()
  get_target_property(kokkos_libraries adasum_kokkos_library INTERFACE_LINK_LIBRARIES)
  if("OpenMP::OpenMP_CXX" IN_LIST kokkos_libraries)
    separate_arguments(openmp_flags UNIX_COMMAND "${OpenMP_CXX_FLAGS}")
    list(APPEND adasum_include_flags ${openmp_flags})
  endif()
endif()

# The command that checks one source file; the file's name goes to the end.
get_target_property(warnings adasum_warnings INTERFACE_COMPILE_OPTIONS)
set(adasum_compile_command "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only ${warnings} -Wsign-conversion
  ${adasum_include_flags})

# The same for programs that link what is compiled once, which takes a quarter of the time.
set(adasum_compiled_flags -DADASUM_COMPILED)
if(TARGET adasum::mpi)
  list(APPEND adasum_compiled_flags -DADASUM_COMPILED_MPI)
endif()

# What lets the host's compiler read CUDA code (tests/emulated_cuda). Kernels count in int, as is usual there, and have pragmas
# of nvcc.
set(adasum_emulated_cuda_flags -D__CUDACC__ "-I${PROJECT_SOURCE_DIR}/tests/emulated_cuda/include" -include cuda_runtime.h
  -Wno-unknown-pragmas -Wno-sign-conversion)

# libtorch's headers, and what it says of the standard library that it was built with.
set(adasum_torch_flags "")
if(TARGET adasum::torch)
  get_target_property(torch_folders adasum_torch_library INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(adasum_torch_flags adasum_torch_library INTERFACE_COMPILE_OPTIONS)
  list(APPEND adasum_torch_flags "-I${PROJECT_SOURCE_DIR}/src/torch/include")
  foreach(folder IN LISTS torch_folders)
    list(APPEND adasum_torch_flags "-isystem${folder}")
  endforeach()
endif()

# A test that passes when the compiler accepts the file.
function(adasum_add_compile_test name source)
  add_test(NAME ${name} COMMAND ${adasum_compile_command} ${ARGN} "${source}")
  set_tests_properties(${name} PROPERTIES LABELS package TIMEOUT 120)
endfunction()
