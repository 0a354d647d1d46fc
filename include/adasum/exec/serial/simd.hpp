// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

/// Vectors of a chosen number of bytes, by the vector extension of GCC and clang: explicit vectors on every target,
/// with no library and no compiler flag. Arguments go by reference and every function is inlined, so the code takes
/// the instruction set of the kernel entry (instruction_set.hpp) that it is used from.
namespace adasum::serial {

template <class L, std::size_t Bytes>
struct vector_type {
  typedef L type __attribute__((vector_size(Bytes)));
};

/// A vector of Bytes / sizeof(L) lanes.
template <class L, std::size_t Bytes>
using vector = typename vector_type<L, Bytes>::type;

template <class To, class From>
[[gnu::always_inline]] inline void bit_copy(To& to, const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  __builtin_memcpy(&to, &from, sizeof(To));
}

/// where(mask, a, b): a in the lanes where the mask's bits are set, b in the others.
template <class V>
[[gnu::always_inline]] inline void where(V& out, const V& mask, const V& a, const V& b) {
  out = (mask & a) | (~mask & b);
}

/// Σ of the lanes of doubles: halves are added until one lane is left.
template <std::size_t Bytes>
[[gnu::always_inline]] inline double sum_of_lanes(const vector<double, Bytes>& lanes) {
  if constexpr (Bytes == 2 * sizeof(double)) {
    return lanes[0] + lanes[1];
  } else {
    vector<double, Bytes / 2> low, high;
    __builtin_memcpy(&low, &lanes, Bytes / 2);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&lanes) + Bytes / 2, Bytes / 2);
    return sum_of_lanes<Bytes / 2>(low + high);
  }
}

}  // namespace adasum::serial
