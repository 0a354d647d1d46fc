// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>

#include "simd.hpp"

/// Conversions that aarch64 makes in one instruction, where GCC 12 takes vectors of 8 bytes apart into their elements.
/// (<arm_neon.h> has names for these instructions, but is larger than what it would serve.)
namespace adasum::detail::serial {

#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(__NVCC__)  // no compiler takes what nvcc makes of these
inline constexpr bool has_neon = true;

/// The lower half of a vector, or all of one of 8 bytes, with lanes of twice the bytes.
template <class V>
[[gnu::always_inline]] inline void widen_by_neon(vector<double, 16>& out, const V& floats) {
  asm("fcvtl %0.2d, %1.2s" : "=w"(out) : "w"(floats));
}
template <class V>
[[gnu::always_inline]] inline void widen_by_neon(vector<std::uint32_t, 16>& out, const V& integers) {
  asm("uxtl %0.4s, %1.4h" : "=w"(out) : "w"(integers));
}
/// The upper half.
[[gnu::always_inline]] inline void widen_upper_by_neon(vector<double, 16>& out, const vector<float, 16>& floats) {
  asm("fcvtl2 %0.2d, %1.4s" : "=w"(out) : "w"(floats));
}

/// Between float and IEEE binary16.
[[gnu::always_inline]] inline void from_binary16_by_neon(vector<float, 16>& out, const vector<std::uint16_t, 8>& bits) {
  asm("fcvtl %0.4s, %1.4h" : "=w"(out) : "w"(bits));
}
/// Rounded to nearest even.
[[gnu::always_inline]] inline void to_binary16_by_neon(vector<std::uint16_t, 8>& out, const vector<float, 16>& value) {
  asm("fcvtn %0.4h, %1.4s" : "=w"(out) : "w"(value));
}
#else
inline constexpr bool has_neon = false;
template <class To, class From>
void widen_by_neon(To& out, const From& narrow);
template <class To, class From>
void widen_upper_by_neon(To& out, const From& narrow);
template <class To, class From>
void from_binary16_by_neon(To& out, const From& bits);
template <class To, class From>
void to_binary16_by_neon(To& out, const From& value);
#endif

}  // namespace adasum::detail::serial
