// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/min_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_min_norm {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("min_norm: the shortest convex combination, of two in closed form") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto g = random_gradients<double>(2, 12, seed);
    if (seed % 3 == 1) add(g[1], 3, g[0]);
    const auto difference = [&] {
      auto d = g[0];
      add(d, -1, g[1]);
      return d;
    }();
    // argmin ‖c a + (1 - c) b‖: c = b·(b - a) / ‖a - b‖², cut to [0, 1].
    const double c = std::clamp(-dot(g[1], difference) / dot(difference, difference), 0.0, 1.0);
    vec expected(12, 0);
    add(expected, c, g[0]);
    add(expected, 1 - c, g[1]);
    CHECK(distance(combined(rules::min_norm{}, g), expected) <= 1e-9 * norm_of(g[0]));
  }
}

TEST_CASE("min_norm: harms no gradient, and nothing in the hull is shorter") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {2u, 3u, 8u, 20u}) {
      CAPTURE(std::string(to_string(kind)));
      CAPTURE(n);
      const auto g = random_gradients<double>(n, 10, n, kind);
      double largest = 0;
      for (const auto& gradient : g) largest = std::max(largest, dot(gradient, gradient));
      const auto c = weights_of(rules::min_norm{}, g);
      CHECK(std::accumulate(c.begin(), c.end(), 0.0) == doctest::Approx(1).epsilon(1e-12));
      CHECK(std::ranges::min(c) >= 0);
      const auto result = combined(rules::min_norm{}, g);
      // The optimality condition: every gradient's inner product with the result is at least ‖result‖². The duality gap
      // that the rule stops at, 1e-13 of the largest square, and rounding.
      for (const auto& gradient : g) CHECK(dot(gradient, result) >= dot(result, result) - 1e-12 * largest);
    }
}

TEST_CASE("min_norm: has what every rule has; squares beyond double too") {
  check_rule(rules::min_norm{}, {.degree = 1, .accuracy = 1e-7});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::min_norm{}, 1, scale);
}

}  // namespace test_of_rules_eigen_min_norm
