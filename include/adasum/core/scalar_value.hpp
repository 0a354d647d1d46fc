// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstdint>

#include "scalar.hpp"

/// Elements of any scalar as numbers of the host or of a device, by the meaning of their bits: slow, and independent of the
/// kernels that convert vectors of them. (By __builtin_bit_cast: std::bit_cast is for the host only, where nvcc compiles.)
namespace adasum::detail {

/// Bits of a 16-bit format's exponent and fraction.
template <number_format Format>
struct half_layout {
  static constexpr int fraction = Format == number_format::binary16 ? 10 : 7;
  static constexpr int exponent = 15 - fraction;
  static constexpr int bias = (1 << (exponent - 1)) - 1;
};

/// The value of a number of `Format` with these bits; exact.
template <number_format Format>
ADASUM_HOST_DEVICE constexpr double decode(std::uint16_t bits) {
  using layout = half_layout<Format>;
  const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15) << 63;
  const int exponent = (bits >> layout::fraction) & ((1 << layout::exponent) - 1);
  const std::uint64_t fraction = bits & ((1u << layout::fraction) - 1);
  if (exponent == 0) {  // zero, or a multiple of the smallest number
    const auto smallest = static_cast<std::uint64_t>(1023 + 1 - layout::bias - layout::fraction) << 52;
    const double magnitude = static_cast<double>(fraction) * __builtin_bit_cast(double, smallest);
    return sign ? -magnitude : magnitude;
  }
  const std::uint64_t wide =
      exponent == (1 << layout::exponent) - 1 ? 2047 : static_cast<std::uint64_t>(exponent - layout::bias + 1023);
  return __builtin_bit_cast(double, sign | wide << 52 | fraction << (52 - layout::fraction));
}

/// The bits of x in `Format`, rounded to nearest even.
template <number_format Format>
ADASUM_HOST_DEVICE constexpr std::uint16_t encode(double x) {
  using layout = half_layout<Format>;
  constexpr auto infinity = static_cast<std::uint64_t>((1 << layout::exponent) - 1) << layout::fraction;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  const auto sign = static_cast<std::uint64_t>(bits >> 63) << 15;
  const int exponent = static_cast<int>((bits >> 52) & 2047) - 1023 + layout::bias;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  std::uint64_t magnitude = 0;
  if (is_nan(x)) {
    magnitude = infinity | std::uint64_t{1} << (layout::fraction - 1);
  } else if (exponent >= (1 << layout::exponent) - 1) {
    magnitude = infinity;
  } else if (exponent >= -layout::fraction) {
    // The fraction with its leading 1, cut where the format's last bit is; below the normal numbers, higher up.
    const int cut = 52 - layout::fraction + (exponent < 1 ? 1 - exponent : 0);
    const std::uint64_t whole = fraction | std::uint64_t{1} << 52;
    const std::uint64_t kept = whole >> cut, rest = whole & ((std::uint64_t{1} << cut) - 1),
                        half = std::uint64_t{1} << (cut - 1);
    magnitude = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);  // a carry goes on into the exponent
    if (exponent >= 1) magnitude += static_cast<std::uint64_t>(exponent - 1) << layout::fraction;
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

template <scalar T>
ADASUM_HOST_DEVICE constexpr double to_double(const T& element) {
  if constexpr (sizeof(T) == sizeof(double))
    return __builtin_bit_cast(double, element);
  else if constexpr (sizeof(T) == sizeof(float))
    return static_cast<double>(__builtin_bit_cast(float, element));
  else
    return decode<format_of<T>>(__builtin_bit_cast(std::uint16_t, element));
}

/// Rounded to nearest even.
template <scalar T>
ADASUM_HOST_DEVICE constexpr T from_double(double value) {
  if constexpr (sizeof(T) == sizeof(double))
    return __builtin_bit_cast(T, value);
  else if constexpr (sizeof(T) == sizeof(float))
    return __builtin_bit_cast(T, static_cast<float>(value));
  else
    return __builtin_bit_cast(T, encode<format_of<T>>(value));
}

}  // namespace adasum::detail
