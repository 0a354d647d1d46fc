// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../core/float_bits.hpp"
#include "../core/scalar.hpp"

/// Elements of any scalar as numbers of the host, by the meaning of their bits. Slow, and independent of the kernels'
/// conversions.
namespace adasum::detail {

/// Fraction bits, and the exponent of the smallest normal number.
struct number_layout {
  int fraction;
  int least_exponent;
};
constexpr number_layout layout_of(number_format format) {
  switch (format) {
    case number_format::binary64: return {52, -1022};
    case number_format::binary32: return {23, -126};
    case number_format::binary16: return {10, -14};
    case number_format::bfloat16: return {7, -126};
  }
  return {};
}

template <scalar T>
double to_double(T element) {
  if constexpr (sizeof(T) == sizeof(double)) {
    double value;
    std::memcpy(&value, &element, sizeof value);
    return value;
  } else if constexpr (sizeof(T) == sizeof(float)) {
    float value;
    std::memcpy(&value, &element, sizeof value);
    return static_cast<double>(value);
  } else {
    constexpr auto layout = layout_of(format_of<T>);
    constexpr int most = (1 << (15 - layout.fraction)) - 1;
    std::uint16_t bits;
    std::memcpy(&bits, &element, sizeof bits);
    const int exponent = (bits & 0x7fff) >> layout.fraction, fraction = bits & ((1 << layout.fraction) - 1);
    double value = std::ldexp(exponent == 0 ? fraction : fraction + (1 << layout.fraction),
                              (exponent == 0 ? 0 : exponent - 1) + layout.least_exponent - layout.fraction);
    if (exponent == most)
      value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return bits & 0x8000 ? -value : value;
  }
}

/// Rounded to nearest even.
template <scalar T>
T from_double(double value) {
  T element;
  if constexpr (sizeof(T) == sizeof(double)) {
    std::memcpy(static_cast<void*>(&element), &value, sizeof value);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(static_cast<void*>(&element), &narrow, sizeof narrow);
  } else {
    constexpr auto layout = layout_of(format_of<T>);
    constexpr int infinite = 0x7fff >> layout.fraction << layout.fraction;
    int magnitude = 0;
    if (is_nan(value)) {
      magnitude = infinite | 1 << (layout.fraction - 1);
    } else if (is_infinite(value)) {
      magnitude = infinite;
    } else if (!is_zero(value)) {
      const int exponent = std::max(std::ilogb(value), layout.least_exponent);
      const auto units = static_cast<int>(std::nearbyint(std::ldexp(std::abs(value), layout.fraction - exponent)));
      // Carries into the exponent where rounding goes up to the next power of two.
      magnitude = std::min(units + ((exponent - layout.least_exponent) << layout.fraction), infinite);
      if (exponent - layout.least_exponent > (infinite >> layout.fraction)) magnitude = infinite;
    }
    const auto bits = static_cast<std::uint16_t>(magnitude | (std::signbit(value) ? 0x8000 : 0));
    std::memcpy(static_cast<void*>(&element), &bits, sizeof bits);
  }
  return element;
}

/// The smallest positive number of T.
template <scalar T>
constexpr double smallest_of() {
  double value = 1;
  for (int i = layout_of(format_of<T>).fraction - layout_of(format_of<T>).least_exponent; i > 0; --i) value /= 2;
  return value;
}

}  // namespace adasum::detail
