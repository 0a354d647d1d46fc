// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The 16-bit conversions of the vector kernels, and those of single numbers, over all 16-bit patterns and the floats around them.
#include <adasum/core/scalar_value.hpp>
#include <adasum/exec/serial/elements.hpp>
#include <adasum/exec/serial/instruction_set.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/every_instruction_set.hpp"

namespace test_of_exec_serial_elements {
struct half_bits {
  std::uint16_t bits;
};
struct bfloat16_bits {
  std::uint16_t bits;
};
}  // namespace test_of_exec_serial_elements

using test_of_exec_serial_elements::half_bits, test_of_exec_serial_elements::bfloat16_bits;
template <>
struct adasum::scalar_traits<half_bits> : adasum::stored_as<adasum::number_format::binary16> {};
template <>
struct adasum::scalar_traits<bfloat16_bits> : adasum::stored_as<adasum::number_format::bfloat16> {};
TYPE_TO_STRING(half_bits);
TYPE_TO_STRING(bfloat16_bits);

namespace test_of_exec_serial_elements {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Significand bits (without the leading one) and the exponent of the smallest normal number.
template <class T>
constexpr int fraction_bits = format_of<T> == number_format::binary16 ? 10 : 7;
template <class T>
constexpr int smallest_exponent = format_of<T> == number_format::binary16 ? -14 : -126;

/// The number that a pattern stands for, from the definition of the format.
template <class T>
double decoded(std::uint16_t bits) {
  const int fraction = bits & ((1 << fraction_bits<T>)-1);
  const int exponent_bits = 15 - fraction_bits<T>;
  const int exponent = (bits & 0x7fff) >> fraction_bits<T>;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits<T>);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - 1 + smallest_exponent<T> - fraction_bits<T>);
}

/// A number rounded to the format, ties to even; what would need a larger exponent is infinite.
template <class T>
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), smallest_exponent<T>);
  const double quantum = std::ldexp(1.0, exponent - fraction_bits<T>);
  const double result = std::nearbyint(value / quantum) * quantum;
  const int largest_exponent = 1 - smallest_exponent<T>;
  return std::abs(result) >= std::ldexp(1.0, largest_exponent + 1) ? std::copysign(HUGE_VAL, value) : result;
}

struct read_kernel {
  template <std::size_t Bytes, class T>
  [[gnu::always_inline]] static void run(const T* from, float* to, std::size_t count) {
    for (std::size_t x = 0; x < count; x += Bytes / sizeof(float)) {
      detail::serial::vector<float, Bytes> value;
      detail::serial::load<Bytes>(value, from + x);
      std::memcpy(to + x, &value, Bytes);
    }
  }
};

struct write_kernel {
  template <std::size_t Bytes, class T>
  [[gnu::always_inline]] static void run(const float* from, T* to, std::size_t count) {
    for (std::size_t x = 0; x < count; x += Bytes / sizeof(float)) {
      detail::serial::vector<float, Bytes> value;
      std::memcpy(&value, from + x, Bytes);
      detail::serial::store<Bytes>(to + x, value);
    }
  }
};

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
std::vector<T> all_patterns() {
  std::vector<T> patterns;
  for (unsigned bits = 0; bits < 0x10000; ++bits) patterns.push_back(T{static_cast<std::uint16_t>(bits)});
  return patterns;
}

/// Floats at, between and just beside all numbers of the format, and random ones. A multiple of 16.
template <class T>
std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<float>(decoded<T>(static_cast<std::uint16_t>(bits)));
    const auto next = decoded<T>(static_cast<std::uint16_t>((bits & 0x7fff) == 0x7fff ? bits : bits + 1));
    const auto middle = std::isfinite(next) ? static_cast<float>((static_cast<double>(value) + next) / 2) : value;
    values.insert(values.end(), {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)});
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 16; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  // Around the largest number: the tie that becomes infinite, and its neighbours; NaNs with few payload bits.
  const float tie =
      static_cast<float>(std::ldexp(2 - std::ldexp(1.0, -fraction_bits<T> - 1), 1 - smallest_exponent<T>));
  for (const float value :
       {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF), std::numeric_limits<float>::max()})
    values.insert(values.end(), {value, -value});
  for (const std::uint32_t nan :
       {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0x7f802000u, 0x7f810000u, 0x7fbfffffu})
    values.push_back(std::bit_cast<float>(nan));
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("every 16-bit pattern is read as the number it stands for", T, half_bits, bfloat16_bits) {
  const auto patterns = all_patterns<T>();
  std::vector<float> values(patterns.size());
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    adasum::test::run<read_kernel>(set, patterns.data(), values.data(), patterns.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if (!same_number(static_cast<double>(values[i]), decoded<T>(patterns[i].bits))) ++wrong;
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("every 16-bit pattern survives being read and written", T, half_bits, bfloat16_bits) {
  const auto patterns = all_patterns<T>();
  std::vector<float> values(patterns.size());
  std::vector<T> back(patterns.size());
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    adasum::test::run<read_kernel>(set, patterns.data(), values.data(), patterns.size());
    adasum::test::run<write_kernel>(set, static_cast<const float*>(values.data()), back.data(), back.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const bool nan = std::isnan(decoded<T>(patterns[i].bits));
      if (nan ? !std::isnan(decoded<T>(back[i].bits)) : back[i].bits != patterns[i].bits) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("floats are rounded to nearest, ties to even; NaN stays NaN", T, half_bits, bfloat16_bits) {
  const auto values = interesting_floats<T>();
  REQUIRE(values.size() % 16 == 0);
  std::vector<T> stored(values.size());
  for (const auto set : every_instruction_set()) {
    CAPTURE(to_string(set));
    adasum::test::run<write_kernel>(set, values.data(), stored.data(), stored.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!same_number(decoded<T>(stored[i].bits), rounded<T>(static_cast<double>(values[i])))) ++wrong;
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("every storage type has the layout that its trait names", T, ADASUM_TEST_SCALARS) {
  if constexpr (is_16_bit<T>) {
    using bits_type = std::conditional_t<format_of<T> == number_format::binary16, half_bits, bfloat16_bits>;
    for (const double value : {1.0, -2.5, 0.09375, 100.0})
      CHECK(decoded<bits_type>(std::bit_cast<std::uint16_t>(from_double<T>(value))) == value);
  } else {
    CHECK(sizeof(T) == (format_of<T> == number_format::binary64 ? 8 : 4));
  }
}

// core/scalar_value.hpp
TEST_CASE_TEMPLATE("16-bit numbers one by one: each is read, and found again; between two, the even one", T, half_bits,
                   bfloat16_bits) {
  constexpr auto format = format_of<T>;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto mine = static_cast<std::uint16_t>(bits);
    const double value = detail::decode<format>(mine), expected = decoded<T>(mine);
    if (std::isnan(expected)) {
      CHECK(std::isnan(value));
      CHECK(std::isnan(detail::decode<format>(detail::encode<format>(value))));
      continue;
    }
    CHECK(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(expected));
    CHECK(detail::encode<format>(value) == mine);
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const double above = detail::decode<format>(next);
    if ((mine ^ next) >> 15 || !std::isfinite(above) || std::isinf(value)) continue;
    const double middle = (value + above) / 2;
    CHECK(detail::encode<format>(middle) == (mine % 2 == 0 ? mine : next));
    CHECK(detail::encode<format>(std::nextafter(middle, value)) == mine);
    CHECK(detail::encode<format>(std::nextafter(middle, above)) == next);
  }
  CHECK(std::isinf(detail::decode<format>(detail::encode<format>(1e300))));
  CHECK(detail::encode<format>(-1e-300) == 0x8000);
}

}  // namespace test_of_exec_serial_elements
