// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/pair.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/adasum_linear.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_adasum_linear {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("adasum_linear: pair after pair, in order") {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 7u, 16u}) {
    const auto g = random_gradients<double>(n, 50, n);
    auto expected = g.front();
    for (std::size_t i = 1; i < n; ++i) adasum_pair(serial_space{}, expected, g[i], expected);
    CHECK(distance(combined(rules::adasum_linear{}, g), expected) <= 1e-13 * norm_of(expected));
    if (n > 3) CHECK(distance(combined(rules::adasum{}, g), expected) > 1e-3 * norm_of(expected));
  }
}

TEST_CASE("adasum_linear: has what every rule has; the order matters") {
  check_rule(rules::adasum_linear{}, {.degree = 1, .symmetric = false});
}

}  // namespace test_of_rules_adasum_linear
