// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "../../core/scalar.hpp"

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

/// The type in which elements stored as T are multiplied.
template <scalar T>
using compute_type = std::conditional_t<format_of<T> == number_format::binary64, double, float>;

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

/// IEEE binary16 → binary32, exactly.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void from_binary16(vector<float, Bytes>& out, const vector<std::uint32_t, Bytes>& bits) {
  using words = vector<std::uint32_t, Bytes>;
  const words sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  // Shifted into place the exponent is 112 too small; multiplying mends normal and subnormal numbers alike.
  vector<float, Bytes> value;
  bit_copy(value, words(magnitude << 13));
  value *= 0x1p112f;
  words result;
  bit_copy(result, value);
  words special;
  bit_copy(special, magnitude >= 0x7c00u);
  result |= (special & 0x7f800000u) | sign;
  bit_copy(out, result);
}

/// binary32 → IEEE binary16 in the low half of each lane, rounded to nearest even; too large becomes infinite.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void to_binary16(vector<std::uint32_t, Bytes>& out, const vector<float, Bytes>& value) {
  using words = vector<std::uint32_t, Bytes>;
  words bits;
  bit_copy(bits, value);
  const words sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  // Normal results: re-bias the exponent, add just under half of the last kept bit, and one more where that is odd.
  const words odd = (magnitude >> 13) & 1u;
  const words normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  // Subnormal results: adding 0.5 lets the floating-point unit round at 2^-24.
  vector<float, Bytes> shifted;
  bit_copy(shifted, magnitude);
  shifted += 0.5f;
  words subnormal;
  bit_copy(subnormal, shifted);
  subnormal -= 0x3f000000u;
  words is_small, is_large, is_nan;
  bit_copy(is_small, magnitude < (113u << 23));
  bit_copy(is_large, magnitude >= (143u << 23));
  bit_copy(is_nan, magnitude > 0x7f800000u);
  words result;
  where(result, is_small, subnormal, normal);
  where(result, is_large, words((is_nan & 0x0200u) | 0x7c00u), result);
  out = result | sign;
}

/// binary32 → bfloat16 in the low half of each lane, rounded to nearest even.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void to_bfloat16(vector<std::uint32_t, Bytes>& out, const vector<float, Bytes>& value) {
  using words = vector<std::uint32_t, Bytes>;
  words bits;
  bit_copy(bits, value);
  const words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  words is_nan;
  bit_copy(is_nan, (bits & 0x7fffffffu) > 0x7f800000u);
  where(out, is_nan, words((bits >> 16) | 0x40u), rounded);
}

/// Reads Bytes / sizeof(compute_type<T>) elements.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline void load(vector<compute_type<T>, Bytes>& out, const T* from) {
  if constexpr (sizeof(T) == sizeof(compute_type<T>)) {
    __builtin_memcpy(&out, from, Bytes);
  } else {
    vector<std::uint16_t, Bytes / 2> halves;
    __builtin_memcpy(&halves, from, Bytes / 2);
    const auto bits = __builtin_convertvector(halves, vector<std::uint32_t, Bytes>);
    if constexpr (format_of<T> == number_format::binary16)
      from_binary16<Bytes>(out, bits);
    else
      bit_copy(out, vector<std::uint32_t, Bytes>(bits << 16));
  }
}

/// Writes as many elements as load reads, rounded to T once.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline void store(T* to, const vector<compute_type<T>, Bytes>& value) {
  if constexpr (sizeof(T) == sizeof(compute_type<T>)) {
    __builtin_memcpy(static_cast<void*>(to), &value, Bytes);
  } else {
    vector<std::uint32_t, Bytes> bits;
    if constexpr (format_of<T> == number_format::binary16)
      to_binary16<Bytes>(bits, value);
    else
      to_bfloat16<Bytes>(bits, value);
    const auto halves = __builtin_convertvector(bits, vector<std::uint16_t, Bytes / 2>);
    __builtin_memcpy(static_cast<void*>(to), &halves, Bytes / 2);
  }
}

/// A vector as doubles, in two of the same number of bytes.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void widen(vector<double, Bytes>& low, vector<double, Bytes>& high,
                                         const vector<float, Bytes>& value) {
  vector<float, Bytes / 2> half;
  __builtin_memcpy(&half, &value, Bytes / 2);
  low = __builtin_convertvector(half, vector<double, Bytes>);
  __builtin_memcpy(&half, reinterpret_cast<const char*>(&value) + Bytes / 2, Bytes / 2);
  high = __builtin_convertvector(half, vector<double, Bytes>);
}

}  // namespace adasum::serial
