// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/named_values.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>

namespace test_of_core_number_text {

using adasum::detail::read_number;
using adasum::detail::read_number_by_strtod;

TEST_CASE("a number as text: both ways to read one take the same texts") {
  using limits = std::numeric_limits<double>;
  const struct {
    std::string_view text;
    double number;
  } taken[] = {{"0", 0},
               {"-0.5", -0.5},
               {".25", .25},
               {"3.", 3},
               {"1e-3", 1e-3},
               {"1E+3", 1e3},
               {"1.7976931348623157e308", limits::max()},
               {"2.2250738585072014e-308", limits::min()},
               {"4.9406564584124654e-324", limits::denorm_min()},
               {"inf", limits::infinity()},
               {"-INFINITY", -limits::infinity()}};
  for (const auto& one : taken) {  // clang 14 captures no structured binding
    const auto text = one.text;
    const auto expected = one.number;
    CAPTURE(text);
    double number = 7, other = 7;
    CHECK(read_number(text, number));
    CHECK(read_number_by_strtod(text, other));
    CHECK(number == expected);
    CHECK(other == expected);
  }
  for (const std::string_view text :
       {std::string_view(""), std::string_view("+1"), std::string_view(" 1"), std::string_view("1 "),
        std::string_view("\n1"), std::string_view("1,5"), std::string_view("0x10"), std::string_view("-0x1p3"),
        std::string_view("1e400"), std::string_view("-1e400"), std::string_view("1e-400"), std::string_view("1e"),
        std::string_view("."), std::string_view("-"), std::string_view("--1"), std::string_view("1\0002", 3),
        std::string_view("1\0", 2), std::string_view("ten")}) {
    CAPTURE(text);
    double number = 7;
    CHECK_FALSE(read_number(text, number));
    CHECK_FALSE(read_number_by_strtod(text, number));
  }
}

TEST_CASE("a number as text: what was written is read with the same bits") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const auto written = std::bit_cast<double>(random());
    if (!adasum::detail::is_finite(written)) continue;
    std::array<char, 32> digits;
    const auto* const end = std::to_chars(digits.data(), digits.data() + digits.size(), written).ptr;
    const std::string_view text(digits.data(), end);
    double number = 7, other = 7;
    CHECK(read_number(text, number));
    CHECK(read_number_by_strtod(text, other));
    CHECK(std::bit_cast<std::uint64_t>(number) == std::bit_cast<std::uint64_t>(written));
    CHECK(std::bit_cast<std::uint64_t>(other) == std::bit_cast<std::uint64_t>(written));
  }
}

TEST_CASE("a whole number as text") {
  std::uint64_t number = 0;
  CHECK(read_number("18446744073709551615", number));
  CHECK(number == std::numeric_limits<std::uint64_t>::max());
  for (const auto* const text : {"", "-1", "1.0", "1e3", "18446744073709551616"})
    CHECK_FALSE(read_number(text, number));
}

}  // namespace test_of_core_number_text
