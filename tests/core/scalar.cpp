// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/scalar.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

// A storage type of the user's own, with the one line that it needs.
namespace test_of_core_scalar {
struct stored {
  std::uint16_t bits;
};
}  // namespace test_of_core_scalar
template <>
struct adasum::scalar_traits<test_of_core_scalar::stored> : adasum::stored_as<adasum::number_format::bfloat16> {};

namespace test_of_core_scalar {

using adasum::format_of;
using adasum::number_format;
using adasum::unit_roundoff;

TEST_CASE("formats: their values, which ranks of other versions compare, and their names in messages") {
  using named = std::pair<number_format, std::string_view>;
  int value = 0;
  for (const auto& [format, name] :
       {named{number_format::binary64, "double"}, named{number_format::binary32, "float"},
        named{number_format::binary16, "half"}, named{number_format::bfloat16, "bfloat16"}}) {
    CHECK(static_cast<int>(format) == ++value);
    CHECK(to_string(format) == name);
  }
  CHECK(to_string(static_cast<number_format>(0)) == "unknown");
}

TEST_CASE("the unit roundoff is half the distance from 1 to the next number") {
  CHECK(unit_roundoff(number_format::binary64) == std::numeric_limits<double>::epsilon() / 2);
  CHECK(unit_roundoff(number_format::binary32) == static_cast<double>(std::numeric_limits<float>::epsilon()) / 2);
  CHECK(unit_roundoff(number_format::binary16) == 1.0 / 2048);  // 10 bits of a fraction
  CHECK(unit_roundoff(number_format::bfloat16) == 1.0 / 256);   // 7
  CHECK(unit_roundoff(static_cast<number_format>(0)) == 1);     // of a format that nobody knows: anything
}

static_assert(format_of<double> == number_format::binary64 && format_of<float> == number_format::binary32 &&
              format_of<stored> == number_format::bfloat16);
#if ADASUM_HAS_FLOAT16
static_assert(format_of<_Float16> == number_format::binary16);
#endif
static_assert(!adasum::scalar<int> && !adasum::scalar<long double>);

}  // namespace test_of_core_scalar
