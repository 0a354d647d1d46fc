// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "simd.hpp"

/// Conversions between floats and 16-bit numbers, for processors without instructions for them.
namespace adasum::detail::serial {

/// IEEE binary16 → binary32, exactly.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void from_binary16(vector<float, Bytes>& out, const vector<std::uint32_t, Bytes>& bits) {
  using words = vector<std::uint32_t, Bytes>;
  const words sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  // Shifted into place, the exponent is 112 too small. A subnormal number has no leading one: it is put into the
  // fraction of 2^-14, which is subtracted again. (A multiplication by 2^112 would do for all, but not where subnormal
  // floats count as zero.)
  const words normal = (magnitude << 13) + (112u << 23);
  vector<float, Bytes> value;
  bit_copy(value, words(normal + (1u << 23)));
  value -= 0x1p-14f;
  words subnormal, is_subnormal, special, result;
  bit_copy(subnormal, value);
  bit_copy(is_subnormal, magnitude < 0x0400u);
  bit_copy(special, magnitude >= 0x7c00u);
  where(result, is_subnormal, subnormal, normal);
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

}  // namespace adasum::detail::serial
