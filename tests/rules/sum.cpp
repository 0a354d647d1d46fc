// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/sum.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_sum {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("sum: of any number of gradients, each with weight 1") {
  for (const std::size_t n : {1u, 2u, 3u, 5u, 8u, 17u}) {
    CAPTURE(n);
    const auto g = random_gradients<double>(n, 40, n, gradient_kind::scaled);
    vec expected(40, 0);
    double mass = 0;
    for (const auto& gradient : g) {
      add(expected, 1, gradient);
      mass += norm_of(gradient);
    }
    CHECK(distance(combined(rules::sum{}, g), expected) <= 1e-14 * mass);
    CHECK(weights_of(rules::sum{}, g) == vec(n, 1));
  }
}

TEST_CASE("sum: integers exactly") { CHECK(combined(rules::sum{}, {{1, 2}, {30, 40}, {-500, 600}}) == vec{-469, 642}); }

TEST_CASE("sum: has what every rule has") { check_rule(rules::sum{}, {.degree = 1}); }

}  // namespace test_of_rules_sum
