# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# With ADASUM_PYTHON, what the package of Python needs of the library (pyproject.toml asks for it): libadasum, which ctypes
# calls, and, where the interpreter has PyTorch, the module adasum._torch. Installed as the component `python`, relative to the
# package's folder.
option(ADASUM_PYTHON "Build what the Python package needs" OFF)
if(NOT ADASUM_PYTHON)
  return()
endif()

find_package(Python 3.9 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
# The calls of C, in a library of the package's own: without a version in its name, since the package is updated as a whole.
function(adasum_add_python_calls target with_mpi)
  add_library(${target} SHARED)
  if(with_mpi)
    target_link_libraries(${target} PRIVATE adasum_c_objects)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:adasum_c_objects>
      "${PROJECT_SOURCE_DIR}/src/python/refusals.cpp" "${PROJECT_SOURCE_DIR}/src/python/signals.cpp")
  else()
    target_link_libraries(${target} PRIVATE adasum_c_without_mpi)
  endif()
  adasum_hide_symbols(${target})
  if(NOT APPLE)
    set(map "${PROJECT_SOURCE_DIR}/src/python/calls.map")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${map}" "LINKER:--no-undefined")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME adasum-calls INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()
set(with_mpi OFF)
if(TARGET adasum_c_objects)
  set(with_mpi ON)
  message(STATUS "adasum: MPI was found, so the package has adasum.allreduce")
else()
  message(STATUS "adasum: no MPI, so the package has no adasum.allreduce")
endif()
if(TARGET adasum::eigen)
  message(STATUS "adasum: Eigen was found, so the package has all rules")
else()
  message(STATUS "adasum: no Eigen, so the package lacks nine rules")
endif()
adasum_add_python_calls(adasum_python_calls ${with_mpi})
install(TARGETS adasum_python_calls LIBRARY DESTINATION . COMPONENT python)

# adasum_add_python_package(<target> <folder> <library>): a package that can be imported from a build folder.
function(adasum_add_python_package target folder library)
  add_custom_target(${target}
    COMMAND "${CMAKE_COMMAND}" -E copy_directory "${PROJECT_SOURCE_DIR}/python/adasum" "${folder}/adasum"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different $<TARGET_FILE:${library}> "${folder}/adasum"
    VERBATIM)
  add_dependencies(${target} ${library})
endfunction()
set(package "${PROJECT_BINARY_DIR}/python-package")
adasum_add_python_package(adasum_python "${package}" adasum_python_calls)

# The interpreter's own PyTorch: -I, so that folders which a build puts in front of its own are not searched. Its package for
# CMake is not asked: it wants the CUDA toolkit where PyTorch was built for CUDA, and takes libraries of another PyTorch where
# the system has one.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -I -c "import torch, os; c = torch._C
print(torch.__version__, os.path.dirname(torch.__file__), int(c._GLIBCXX_USE_CXX11_ABI), torch.version.cuda or 0, sep=';')
print(*(f'PYBIND11_{name}=\"{value}\"' for name in ('COMPILER_TYPE', 'STDLIB', 'BUILD_ABI')
        if (value := getattr(c, '_PYBIND11_' + name, None))), sep=';')"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE problem RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  if(NOT problem MATCHES "No module named 'torch'")
    message(WARNING "adasum: ${Python_EXECUTABLE} cannot import PyTorch: ${problem}")
  endif()
  message(STATUS "adasum: ${Python_EXECUTABLE} has no PyTorch, so the package has no adasum.torch")
  return()
endif()
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "adasum: the package for PyTorch needs Python's headers (Debian: python3-dev)")
endif()
string(REPLACE "\n" ";" found "${found};")
list(POP_FRONT found version folder new_abi cuda)
message(STATUS "adasum: PyTorch ${version} in ${folder}")
# PyTorch's classes are known to modules that were compiled with the same pybind11, and by a compiler that counts as the same:
# its own copy, if it brings one, and the names that it was compiled with, if it tells them (before 2.9).
set(headers "${folder}/include")
find_path(ADASUM_PYBIND11_HEADERS pybind11/pybind11.h HINTS "${headers}" NO_CACHE)
if(NOT ADASUM_PYBIND11_HEADERS)
  message(FATAL_ERROR "adasum: this PyTorch comes without pybind11's headers (Debian: pybind11-dev)")
endif()
set(libraries)
foreach(library IN ITEMS torch_python torch torch_cpu c10)
  find_library(path ${library} PATHS "${folder}/lib" NO_DEFAULT_PATH NO_CACHE REQUIRED)
  list(APPEND libraries "${path}")
  unset(path)
endforeach()

Python_add_library(adasum_python_torch MODULE WITH_SOABI src/python/module.cpp src/python/reducer.cpp
  src/python/sparse_rows.cpp src/python/group_worker.cpp src/python/kernels.cpp src/python/profiler.cpp)
set_target_properties(adasum_python_torch PROPERTIES OUTPUT_NAME _torch)
adasum_hide_symbols(adasum_python_torch)
target_compile_definitions(adasum_python_torch PRIVATE ${found} _GLIBCXX_USE_CXX11_ABI=${new_abi})
target_include_directories(adasum_python_torch SYSTEM PRIVATE
  "${ADASUM_PYBIND11_HEADERS}" "${headers}" "${headers}/torch/csrc/api/include")
target_include_directories(adasum_python_torch PRIVATE "${PROJECT_SOURCE_DIR}/src/torch/include")
target_link_libraries(adasum_python_torch PRIVATE adasum_calls adasum ${libraries})
# With the project's CUDA, and a PyTorch that has it, too: kernels for its tensors, with the runtime that PyTorch has loaded, so
# that both mean the same by the current device.
if(ADASUM_CUDA AND cuda)
  if(NOT cuda MATCHES "^${CUDAToolkit_VERSION_MAJOR}\\.")
    message(FATAL_ERROR "adasum: this PyTorch was built for CUDA ${cuda}, and nvcc is of ${CUDAToolkit_VERSION}: use one of the "
                        "same major version, or leave out ADASUM_CUDA")
  endif()
  file(STRINGS "${headers}/c10/core/impl/DeviceGuardImplInterface.h" names_streams REGEX getStreamNativeHandle)
  if(NOT names_streams)
    message(FATAL_ERROR "adasum: PyTorch ${version} is too old for kernels for CUDA: it does not tell its streams")
  endif()
  target_sources(adasum_python_torch PRIVATE src/python/cuda_kernels.cu)
  target_compile_options(adasum_python_torch PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
  set_target_properties(adasum_python_torch PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  message(STATUS "adasum: adasum.torch with kernels for CUDA (${CMAKE_CUDA_ARCHITECTURES})")
  target_compile_definitions(adasum_python_torch PRIVATE ADASUM_WITH_CUDA=1)
else()
  target_compile_definitions(adasum_python_torch PRIVATE ADASUM_WITH_CUDA=0)
endif()
add_dependencies(adasum_python adasum_python_torch)
add_custom_command(TARGET adasum_python POST_BUILD
  COMMAND "${CMAKE_COMMAND}" -E copy_if_different $<TARGET_FILE:adasum_python_torch> "${package}/adasum" VERBATIM)
install(TARGETS adasum_python_torch LIBRARY DESTINATION . COMPONENT python)
