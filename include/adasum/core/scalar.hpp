// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace adasum::detail {

// ── what kind of number a float or double is ──
// Read from its bits. Comparisons and std::isnan cannot tell in a program compiled with -ffast-math: there the compiler
// assumes that no number is NaN or infinite, so that NaN may compare equal to zero.

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

/// Which element types a gradient may have. A type is described by its bits alone, so that any 16-bit storage type
/// (the compiler's, Eigen's, CUDA's, libtorch's) takes part with one line:
///
///     template <> struct adasum::scalar_traits<c10::BFloat16> : adasum::stored_as<adasum::number_format::bfloat16> {};
namespace adasum {

/// The bit layouts that kernels know. Values are stable: ranks compare them.
enum class number_format : unsigned char {
  binary64 = 1,  ///< double
  binary32 = 2,  ///< float
  binary16 = 3,  ///< IEEE half: 11 bits of precision, up to 65504
  bfloat16 = 4   ///< 8 bits of precision, the range of float
};

/// "double", "float", "half" or "bfloat16".
constexpr std::string_view to_string(number_format format) {
  switch (format) {
    case number_format::binary64: return "double";
    case number_format::binary32: return "float";
    case number_format::binary16: return "half";
    case number_format::bfloat16: return "bfloat16";
  }
  return "unknown";
}

/// Says how the numbers of a type are stored: what a scalar_traits derives from.
template <number_format Format>
struct stored_as {
  /// The bit layout.
  static constexpr number_format format = Format;
};

/// Specialise for a storage type of your own; see stored_as.
template <class T>
struct scalar_traits {};

/// @cond internal
template <>
struct scalar_traits<double> : stored_as<number_format::binary64> {};
template <>
struct scalar_traits<float> : stored_as<number_format::binary32> {};
/// @endcond

// The compiler's own 16-bit types. clang before 15 on x86, and GCC before 13 elsewhere, announce _Float16 without
// supporting it.
#if !defined(__FLT16_MANT_DIG__) || defined(__CUDACC__)
#define ADASUM_HAS_FLOAT16 0
#elif defined(__clang__)
#define ADASUM_HAS_FLOAT16 (__clang_major__ >= 15)
#elif defined(__x86_64__) || defined(__i386__)
#define ADASUM_HAS_FLOAT16 1
#else
#define ADASUM_HAS_FLOAT16 (__GNUC__ >= 13)
#endif
#if ADASUM_HAS_FLOAT16
template <>
struct scalar_traits<_Float16> : stored_as<number_format::binary16> {};
#endif
#if defined(__STDCPP_BFLOAT16_T__) && !defined(__CUDACC__)
template <>
struct scalar_traits<decltype(0.0bf16)> : stored_as<number_format::bfloat16> {};
#endif

/// @cond internal
namespace detail {
/// An element of 16 bits that is nothing but its bits.
template <number_format Format>
struct half_bits {
  std::uint16_t bits;
};
}  // namespace detail
template <number_format Format>
struct scalar_traits<detail::half_bits<Format>> : stored_as<Format> {};
/// @endcond

/// An element type of a gradient: trivially copyable, with a known bit layout.
template <class T>
concept scalar = std::is_trivially_copyable_v<T> && requires {
  { scalar_traits<T>::format } -> std::convertible_to<number_format>;
};

/// The bit layout of an element type.
template <scalar T>
inline constexpr number_format format_of = scalar_traits<T>::format;

/// The largest relative error of rounding to the nearest number of this format.
constexpr double unit_roundoff(number_format format) {
  switch (format) {
    case number_format::binary64: return 0x1p-53;
    case number_format::binary32: return 0x1p-24;
    case number_format::binary16: return 0x1p-11;
    case number_format::bfloat16: return 0x1p-8;
  }
  return 1;
}

}  // namespace adasum
