// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t bits;

  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float x);
  explicit operator float() const {
    const auto wide = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};
inline __nv_bfloat16 __ushort_as_bfloat16(std::uint16_t bits) {
  __nv_bfloat16 x;
  x.bits = bits;
  return x;
}
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline float __bfloat162float(__nv_bfloat16 x) { return static_cast<float>(x); }
/// Rounded once: first to odd, in a float, whose sixteen surplus bits then tell how to round to nearest even.
inline __nv_bfloat16 __double2bfloat16(double x) {
  const auto value = static_cast<float>(x);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return __ushort_as_bfloat16(0x7fff);
  if (static_cast<double>(value) != x && std::isfinite(value)) {
    if (std::fabs(static_cast<double>(value)) > std::fabs(x)) --bits;  // towards zero
    bits |= 1;
  }
  return __ushort_as_bfloat16(static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));
}
inline __nv_bfloat16::__nv_bfloat16(float x) : bits(__double2bfloat16(static_cast<double>(x)).bits) {}
