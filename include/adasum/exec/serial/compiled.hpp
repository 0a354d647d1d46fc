// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "convert.hpp"
#include "instruction_set.hpp"
#include "measure.hpp"
#include "mix.hpp"
#include "short_segments.hpp"

/// The kernels of serial_space, each for one scalar and all instruction sets, as explicit instantiations: with `extern`
/// before them, they are compiled elsewhere. (A program that defines ADASUM_COMPILED has to link the library in which
/// they are: in CMake, the target adasum::compiled does both.)
#define ADASUM_SERIAL_KERNELS_BY(EXTERN, ENTRY, T)                                                               \
  EXTERN template void ENTRY<measure_few<1, T>>(const T* const*, std::size_t, bool, double*, std::size_t);       \
  EXTERN template void ENTRY<measure_few<2, T>>(const T* const*, std::size_t, bool, double*, std::size_t);       \
  EXTERN template void ENTRY<measure_many<T>>(const T* const*, std::size_t, std::size_t, bool, compute_type<T>*, \
                                              const compute_type<T>**, double*, std::size_t);                    \
  EXTERN template void ENTRY<mix_few<1, T>>(const T* const*, std::size_t, bool, bool, const double*, T*);        \
  EXTERN template void ENTRY<mix_few<2, T>>(const T* const*, std::size_t, bool, bool, const double*, T*);        \
  EXTERN template void ENTRY<mix_many<T>>(const T* const*, std::size_t, std::size_t, bool, const double*, T*);

/// For sums of vectors that are kept in double, of T other than double.
#define ADASUM_SERIAL_SUMS_BY(EXTERN, ENTRY, T)                                                                        \
  EXTERN template void ENTRY<mix_many<T, double>>(const T* const*, std::size_t, std::size_t, bool, const double*,      \
                                                  double*);                                                            \
  EXTERN template void ENTRY<mix_many<double, T>>(const double* const*, std::size_t, std::size_t, bool, const double*, \
                                                  T*);

/// For runs of short segments, of T = float.
#define ADASUM_SERIAL_SHORT_BY(EXTERN, ENTRY, T)                                                               \
  EXTERN template void ENTRY<measure_short_pairs>(const T*, const T*, std::size_t, const slice*, index_range*, \
                                                  double*);                                                    \
  EXTERN template void ENTRY<measure_short>(const T* const*, std::size_t, const slice*, index_range*, double*, \
                                            double*);                                                          \
  EXTERN template void ENTRY<mix_short>(const T* const*, std::size_t, const slice*, index_range*, const double*, T*);

/// Between float and a 16-bit scalar T.
#define ADASUM_SERIAL_CONVERSIONS_BY(EXTERN, ENTRY, T)                                 \
  EXTERN template void ENTRY<convert<float, T>>(const float*, T*, std::size_t length); \
  EXTERN template void ENTRY<convert<T, float>>(const T*, float*, std::size_t length);

#if defined(__x86_64__)
#define ADASUM_BY_EVERY_ENTRY(KERNELS, EXTERN, T) \
  KERNELS(EXTERN, enter_avx512, T)                \
  KERNELS(EXTERN, enter_avx2, T)                  \
  KERNELS(EXTERN, enter_baseline, T)
#else
#define ADASUM_BY_EVERY_ENTRY(KERNELS, EXTERN, T) KERNELS(EXTERN, enter_baseline, T)
#endif

/// Within namespace adasum::detail::serial.
#define ADASUM_SERIAL_KERNELS(EXTERN, T) ADASUM_BY_EVERY_ENTRY(ADASUM_SERIAL_KERNELS_BY, EXTERN, T)
#define ADASUM_SERIAL_SUMS(EXTERN, T) ADASUM_BY_EVERY_ENTRY(ADASUM_SERIAL_SUMS_BY, EXTERN, T)
#define ADASUM_SERIAL_CONVERSIONS(EXTERN, T) ADASUM_BY_EVERY_ENTRY(ADASUM_SERIAL_CONVERSIONS_BY, EXTERN, T)

/// What adasum::compiled holds. (No bfloat16: its standard type is C++23's, so whether it is there would depend on how
/// the library was compiled.)
#if ADASUM_HAS_FLOAT16
#define ADASUM_COMPILED_FLOAT16(EXTERN)   \
  ADASUM_SERIAL_KERNELS(EXTERN, _Float16) \
  ADASUM_SERIAL_SUMS(EXTERN, _Float16)    \
  ADASUM_SERIAL_CONVERSIONS(EXTERN, _Float16)
#else
#define ADASUM_COMPILED_FLOAT16(EXTERN)
#endif
#define ADASUM_COMPILED_KERNELS(EXTERN)                        \
  ADASUM_SERIAL_KERNELS(EXTERN, float)                         \
  ADASUM_SERIAL_KERNELS(EXTERN, double)                        \
  ADASUM_SERIAL_SUMS(EXTERN, float)                            \
  ADASUM_BY_EVERY_ENTRY(ADASUM_SERIAL_SHORT_BY, EXTERN, float) \
  ADASUM_COMPILED_FLOAT16(EXTERN)

#ifdef ADASUM_COMPILED
namespace adasum::detail::serial {
ADASUM_COMPILED_KERNELS(extern)
}  // namespace adasum::detail::serial
#endif
