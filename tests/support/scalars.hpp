// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <adasum/core/scalar.hpp>

/// How to convert scalars, and how they round.
namespace adasum::test {

template <scalar T>
inline constexpr bool is_16_bit = sizeof(T) == 2;

template <scalar T>
double to_double(T value) {
  if constexpr (is_16_bit<T>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

template <scalar T>
T from_double(double value) {
  if constexpr (is_16_bit<T>)
    return static_cast<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <scalar T>
std::vector<T> from_doubles(std::span<const double> values) {
  std::vector<T> converted;
  for (const double value : values) converted.push_back(from_double<T>(value));
  return converted;
}

/// How a format rounds to nearest: |rounded − x| <= unit·|x| + tiny.
struct rounding {
  long double unit;  ///< half of the distance from 1 to the next number
  long double tiny;  ///< half of the smallest subnormal number; for binary64 all of it, as ppc64le has nothing smaller
};

constexpr rounding rounding_of(number_format format) {
  switch (format) {
    case number_format::binary64: return {0x1p-53L, 0x1p-1074L};
    case number_format::binary32: return {0x1p-24L, 0x1p-150L};
    case number_format::binary16: return {0x1p-11L, 0x1p-25L};
    case number_format::bfloat16: return {0x1p-8L, 0x1p-134L};
  }
  return {};
}

template <scalar T>
inline constexpr rounding rounding_to = rounding_of(format_of<T>);

template <scalar T>
T quiet_nan() {
  return from_double<T>(std::numeric_limits<double>::quiet_NaN());
}

template <scalar T>
T infinity() {
  return from_double<T>(std::numeric_limits<double>::infinity());
}

}  // namespace adasum::test
