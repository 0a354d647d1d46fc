// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <adasum/exec/serial.hpp>

#include "scalars.hpp"

/// The serial kernels of every scalar under test, declared here and compiled in kernels.cpp alone: they are most of
/// what a test would compile otherwise. Every test is told to include this first.
namespace adasum::serial {

#define ADASUM_TEST_KERNEL(EXTERN, ENTRY, T)                                                                     \
  EXTERN template void ENTRY<measure_few<1, T>>(const T* const*, std::size_t, bool, double*);                    \
  EXTERN template void ENTRY<measure_few<2, T>>(const T* const*, std::size_t, bool, double*);                    \
  EXTERN template void ENTRY<measure_many<T>>(const T* const*, std::size_t, std::size_t, bool, compute_type<T>*, \
                                              const compute_type<T>**, double*);                                 \
  EXTERN template void ENTRY<mix_few<1, T>>(const T* const*, std::size_t, bool, const double*, T*);              \
  EXTERN template void ENTRY<mix_few<2, T>>(const T* const*, std::size_t, bool, const double*, T*);              \
  EXTERN template void ENTRY<mix_many<T>>(const T* const*, std::size_t, std::size_t, bool, const double*, T*);

#if defined(__x86_64__)
#define ADASUM_TEST_KERNELS_OF(EXTERN, T)     \
  ADASUM_TEST_KERNEL(EXTERN, enter_avx512, T) \
  ADASUM_TEST_KERNEL(EXTERN, enter_avx2, T)   \
  ADASUM_TEST_KERNEL(EXTERN, enter_baseline, T)
#else
#define ADASUM_TEST_KERNELS_OF(EXTERN, T) ADASUM_TEST_KERNEL(EXTERN, enter_baseline, T)
#endif

#ifdef ADASUM_TEST_EIGEN
#define ADASUM_TEST_EIGEN_KERNELS(EXTERN)     \
  ADASUM_TEST_KERNELS_OF(EXTERN, Eigen::half) \
  ADASUM_TEST_KERNELS_OF(EXTERN, Eigen::bfloat16)
#else
#define ADASUM_TEST_EIGEN_KERNELS(EXTERN)
#endif
#if defined(__FLT16_MANT_DIG__) && (!defined(__clang__) || __clang_major__ >= 15)
#define ADASUM_TEST_COMPILER_KERNELS(EXTERN) ADASUM_TEST_KERNELS_OF(EXTERN, _Float16)
#else
#define ADASUM_TEST_COMPILER_KERNELS(EXTERN)
#endif
#define ADASUM_TEST_KERNELS(EXTERN)      \
  ADASUM_TEST_KERNELS_OF(EXTERN, double) \
  ADASUM_TEST_KERNELS_OF(EXTERN, float)  \
  ADASUM_TEST_EIGEN_KERNELS(EXTERN)      \
  ADASUM_TEST_COMPILER_KERNELS(EXTERN)

ADASUM_TEST_KERNELS(extern)

}  // namespace adasum::serial
