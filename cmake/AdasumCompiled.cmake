# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# adasum::compiled is adasum::adasum with its engine and kernels in a static library: sources that link it compile in much
# less time, and get optimised code whatever their own flags. It serves every rule, schedule, space, communicator and element
# type. adasum::compiled_mpi adds what the engine calls of an mpi_communicator, for the MPI that it is built with. Built
# where something links them; installed, as components of these names, unless ADASUM_INSTALL_COMPILED is OFF.

add_library(adasum_compiled STATIC EXCLUDE_FROM_ALL src/engine.cpp)
add_library(adasum::compiled ALIAS adasum_compiled)
set_target_properties(adasum_compiled PROPERTIES EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON)
target_link_libraries(adasum_compiled PUBLIC adasum)
target_compile_definitions(adasum_compiled PUBLIC ADASUM_COMPILED)
# After the flags of the build type, and over them.
target_compile_options(adasum_compiled PRIVATE -O2 -fno-fast-math)

if(TARGET adasum::mpi)
  add_library(adasum_compiled_mpi STATIC EXCLUDE_FROM_ALL src/mpi.cpp)
  add_library(adasum::compiled_mpi ALIAS adasum_compiled_mpi)
  set_target_properties(adasum_compiled_mpi PROPERTIES EXPORT_NAME compiled_mpi POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(adasum_compiled_mpi PUBLIC adasum_compiled adasum_mpi)
  target_compile_definitions(adasum_compiled_mpi PUBLIC ADASUM_COMPILED_MPI)
  target_compile_options(adasum_compiled_mpi PRIVATE -O2 -fno-fast-math)
endif()
