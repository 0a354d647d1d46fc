// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/unit_mean.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_unit_mean {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("unit_mean: the mean of unit vectors") {
  for (const std::size_t n : {1u, 2u, 5u, 8u}) {
    const auto g = random_gradients<double>(n, 40, n, gradient_kind::scaled);
    vec expected(40, 0);
    for (const auto& gradient : g) add(expected, 1 / (static_cast<double>(n) * norm_of(gradient)), gradient);
    const auto result = combined(rules::unit_mean{}, g);
    CHECK(distance(result, expected) <= 1e-13);
    CHECK(norm_of(result) <= 1 + 1e-13);
  }
}

TEST_CASE("unit_mean: has what every rule has") {
  check_rule(rules::unit_mean{}, {.degree = 0, .one_is_itself = false});
}

}  // namespace test_of_rules_unit_mean
