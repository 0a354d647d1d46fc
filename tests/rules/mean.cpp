// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/mean.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_mean {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("mean: each side of a pair weighs as many gradients as it combines") {
  const auto weights = [](std::size_t leaves_a, std::size_t leaves_b) {
    const auto [a, b] = rules::mean{}({2, 1, 3, leaves_a, leaves_b});
    return vec{a, b};
  };
  CHECK(weights(1, 1) == vec{0.5, 0.5});
  CHECK(weights(3, 1) == vec{0.75, 0.25});
  CHECK(weights(0, 2) == vec{0, 1});  // nobody of the left side takes part
  CHECK(weights(0, 0) == vec{0, 0});
}

TEST_CASE("mean: of any number of gradients") {
  for (const std::size_t n : {1u, 2u, 3u, 5u, 8u, 17u}) {
    CAPTURE(n);
    const auto g = random_gradients<double>(n, 40, n, gradient_kind::scaled);
    const double each = 1 / static_cast<double>(n);
    vec expected(40, 0);
    double mass = 0;
    for (const auto& gradient : g) {
      add(expected, each, gradient);
      mass += each * norm_of(gradient);
    }
    CHECK(distance(combined(rules::mean{}, g), expected) <= 1e-14 * mass);
    for (const double weight : weights_of(rules::mean{}, g)) CHECK(weight == doctest::Approx(each).epsilon(1e-14));
  }
}

TEST_CASE("mean: has what every rule has") { check_rule(rules::mean{}, {.degree = 1}); }

}  // namespace test_of_rules_mean
