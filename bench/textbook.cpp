// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "textbook.hpp"

#include <adasum/core/scalar.hpp>

#include <bit>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace textbook {
namespace {

template <class T>
T read(T element) {
  return element;
}
template <class T>
T rounded(double value) {
  return static_cast<T>(value);
}

#if ADASUM_HAS_FLOAT16
/// By way of float, with the processor's own conversions: left to itself, GCC 12 turns half into double by a call to
/// its run-time library for each element, which is no baseline.
float read(_Float16 element) {
#ifdef __F16C__
  return _cvtsh_ss(std::bit_cast<unsigned short>(element));
#else
  return element;
#endif
}
template <>
_Float16 rounded(double value) {
#ifdef __F16C__
  return std::bit_cast<_Float16>(_cvtss_sh(static_cast<float>(value), _MM_FROUND_TO_NEAREST_INT));
#else
  return static_cast<_Float16>(static_cast<float>(value));
#endif
}
#endif

}  // namespace

template <class Build, class T>
void pair(T* a, const T* b, std::size_t length) {
  double aa = 0, ab = 0, bb = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const double x = read(a[i]), y = read(b[i]);
    aa += x * x;
    ab += x * y;
    bb += y * y;
  }
  const double weight_a = aa > 0 ? 1 - ab / (2 * aa) : 1, weight_b = bb > 0 ? 1 - ab / (2 * bb) : 1;
  for (std::size_t i = 0; i < length; ++i) a[i] = rounded<T>(weight_a * read(a[i]) + weight_b * read(b[i]));
}

template void pair<TEXTBOOK_BUILD>(float*, const float*, std::size_t);
template void pair<TEXTBOOK_BUILD>(double*, const double*, std::size_t);
#if ADASUM_HAS_FLOAT16
template void pair<TEXTBOOK_BUILD>(_Float16*, const _Float16*, std::size_t);
#endif

}  // namespace textbook
