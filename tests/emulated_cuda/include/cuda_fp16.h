// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cuda_runtime.h"

struct __half {
  std::uint16_t bits;

  __half() = default;
  explicit __half(float x) {
    const auto value = static_cast<_Float16>(x);
    std::memcpy(&bits, &value, sizeof bits);
  }
  explicit operator float() const {
    _Float16 value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<float>(value);
  }
};
inline __half __ushort_as_half(std::uint16_t bits) {
  __half x;
  x.bits = bits;
  return x;
}
inline std::uint16_t __half_as_ushort(__half x) { return x.bits; }
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __double2half(double x) {
  const auto value = static_cast<_Float16>(x);
  __half bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
