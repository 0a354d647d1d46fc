// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// What every header includes first: a compiler that can read the library, and the marks on functions.

// Compilers go on after #error, and a thousand errors of a compiler that reads the wrong language would follow. A header
// that does not exist is where all of them stop, so the error that says what to do stays in sight.
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "adasum needs C++20: compile with -std=c++20 (in CMake: target_compile_features(app PRIVATE cxx_std_20))"
#include <adasum_needs_cxx20>
#endif
#if !defined(__cpp_exceptions)
#error "adasum reports errors as exceptions: compile without -fno-exceptions"
#include <adasum_needs_exceptions>
#endif
#if defined(ADASUM_COMPILED_MPI) && !defined(ADASUM_COMPILED)
#error "adasum: ADASUM_COMPILED_MPI without ADASUM_COMPILED: define both, for all sources of the program"
#include <adasum_needs_ADASUM_COMPILED>
#endif

/// For functions that run on the host and, where a device's compiler reads them, on the device as well.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define ADASUM_HOST_DEVICE __host__ __device__
#else
#define ADASUM_HOST_DEVICE
#endif

/// In front of such a function that calls what its caller gave it, a rule or a lambda: when it is called on the host,
/// they may be for the host only, about which nvcc would warn.
#if defined(__NVCC__)
#define ADASUM_CALLS_ITS_ARGUMENT _Pragma("nv_exec_check_disable")
#else
#define ADASUM_CALLS_ITS_ARGUMENT
#endif

/// Behind the name of a function that is also a macro with parameters elsewhere: timeout, in curses.h.
#define ADASUM_NO_MACRO

/// Functions that are no templates are defined behind `#if ADASUM_DEFINITIONS`, at the end of the header that declares them, each
/// with ADASUM_INLINE. By default, every program reads them. Where ADASUM_COMPILED is defined, for all sources of a program, only
/// the library adasum::compiled does, or the one source that includes <adasum/implementation.hpp>. So what only definitions need
/// is included behind that line as well.
#if !defined(ADASUM_COMPILED)
#define ADASUM_DEFINITIONS 1
#define ADASUM_INLINE inline
#else
#if defined(ADASUM_IMPLEMENTATION)
#define ADASUM_DEFINITIONS 1
#else
#define ADASUM_DEFINITIONS 0
#endif
#define ADASUM_INLINE
#endif

/// The same for what needs MPI, with ADASUM_COMPILED_MPI and adasum::compiled_mpi.
#if !defined(ADASUM_COMPILED_MPI)
#define ADASUM_MPI_DEFINITIONS 1
#define ADASUM_MPI_INLINE inline
#else
#if defined(ADASUM_MPI_IMPLEMENTATION)
#define ADASUM_MPI_DEFINITIONS 1
#else
#define ADASUM_MPI_DEFINITIONS 0
#endif
#define ADASUM_MPI_INLINE
#endif

// In a program that mixes both ways, the linker might take the functions of a source that reads the definitions, however that is
// optimised, and never look into the library. So every other source refers to an object of the library's.
namespace adasum::detail {
#if defined(ADASUM_COMPILED)
extern const char compiled_once;
#if ADASUM_DEFINITIONS
const char compiled_once = 0;
#else
[[gnu::used]] static const char* const uses_compiled_once = &compiled_once;
#endif
#endif
#if defined(ADASUM_COMPILED_MPI)
extern const char compiled_once_for_mpi;
#if ADASUM_MPI_DEFINITIONS
const char compiled_once_for_mpi = 0;
#else
[[gnu::used]] static const char* const uses_compiled_once_for_mpi = &compiled_once_for_mpi;
#endif
#endif
}  // namespace adasum::detail
