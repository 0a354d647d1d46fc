// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>

#include "reductions.hpp"

TEST_CASE("translation units with and without NDEBUG live in one program and agree") {
  const auto with = with_assertions(), without = without_assertions();
  CHECK(with.checked_by_default);
  CHECK_FALSE(without.checked_by_default);
  CHECK(with.results == without.results);

  // The published values for these two gradients, which have four digits.
  const std::vector<double> expected{6.2643, 7.1228, 7.9812, 8.8397};
  CHECK(with.results.size() == 10);
  for (const auto& result : with.results)
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(result[i] - expected[i]) < 1e-4);
}
