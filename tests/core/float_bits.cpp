// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Under -ffast-math: tests/fast_math.cpp.
#include <adasum/core/scalar.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace test_of_core_float_bits {

using namespace adasum::detail;

TEST_CASE_TEMPLATE("kinds of numbers, as the standard library tells them", F, float, double) {
  using limits = std::numeric_limits<F>;
  for (const F magnitude : {F{0}, limits::denorm_min(), limits::min(), F{1}, limits::max(), limits::infinity(),
                            limits::quiet_NaN(), limits::signaling_NaN()})
    for (const F value : {magnitude, std::copysign(magnitude, F{-1})}) {
      CAPTURE(value);
      CHECK(is_finite(value) == std::isfinite(value));
      CHECK(is_infinite(value) == std::isinf(value));
      CHECK(is_nan(value) == std::isnan(value));
      CHECK(is_zero(value) == (std::fpclassify(value) == FP_ZERO));
    }
}

TEST_CASE_TEMPLATE("bits are ordered as magnitudes, and those of NaN are larger", F, float, double) {
  using limits = std::numeric_limits<F>;
  const std::vector<F> ascending{0,
                                 limits::denorm_min(),
                                 limits::min(),
                                 limits::epsilon(),
                                 1,
                                 std::nextafter(F{1}, F{2}),
                                 limits::max(),
                                 limits::infinity(),
                                 limits::quiet_NaN()};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    CHECK(magnitude_bits(ascending[i - 1]) < magnitude_bits(ascending[i]));
    CHECK(magnitude_bits(-ascending[i]) == magnitude_bits(ascending[i]));
  }
  CHECK(infinity_bits<F> == magnitude_bits(limits::infinity()));
}

static_assert(is_zero(-0.0) && is_finite(1e308) && !is_finite(-std::numeric_limits<float>::infinity()));

}  // namespace test_of_core_float_bits
