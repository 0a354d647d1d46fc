// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

/// What kind of number a float or double is, read from its bits. Comparisons and std::isnan cannot tell in a program
/// compiled with -ffast-math: there the compiler assumes that no number is NaN or infinite, so that NaN may compare
/// equal to zero.
namespace adasum::detail {

template <std::floating_point F>
using float_bits = std::conditional_t<sizeof(F) == 8, std::uint64_t, std::uint32_t>;

/// The bits without the sign. For numbers that are not NaN they are ordered as the magnitudes; those of NaN are larger.
template <std::floating_point F>
ADASUM_HOST_DEVICE constexpr float_bits<F> magnitude_bits(F value) {
  static_assert(std::numeric_limits<F>::is_iec559 && sizeof(F) == sizeof(float_bits<F>));
  return __builtin_bit_cast(float_bits<F>, value) & (~float_bits<F>{0} >> 1);
}

/// The bits of infinity: all of the exponent, none of the fraction.
template <std::floating_point F>
inline constexpr float_bits<F> infinity_bits = (~float_bits<F>{0} >> 1) >> (std::numeric_limits<F>::digits - 1)
                                                                               << (std::numeric_limits<F>::digits - 1);

template <std::floating_point F>
ADASUM_HOST_DEVICE constexpr bool is_finite(F value) {
  return magnitude_bits(value) < infinity_bits<F>;
}
template <std::floating_point F>
ADASUM_HOST_DEVICE constexpr bool is_infinite(F value) {
  return magnitude_bits(value) == infinity_bits<F>;
}
template <std::floating_point F>
ADASUM_HOST_DEVICE constexpr bool is_nan(F value) {
  return magnitude_bits(value) > infinity_bits<F>;
}
/// Of either sign.
template <std::floating_point F>
ADASUM_HOST_DEVICE constexpr bool is_zero(F value) {
  return magnitude_bits(value) == 0;
}

}  // namespace adasum::detail
