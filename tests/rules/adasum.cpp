// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/tree_order.hpp>
#include <adasum/rules/adasum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_adasum {

using namespace adasum;
using namespace adasum::test;

namespace {

/// The formula, on the vectors; the zero vector is neutral.
vec adasum_of(const vec& a, const vec& b) {
  vec result(a.size(), 0);
  add(result, dot(a, a) > 0 ? 1 - dot(a, b) / (2 * dot(a, a)) : 1, a);
  add(result, dot(b, b) > 0 ? 1 - dot(a, b) / (2 * dot(b, b)) : 1, b);
  return result;
}

}  // namespace

TEST_CASE("adasum: weights from inner products, by hand") {
  const auto weights = [](double aa, double ab, double bb) {
    const auto [a, b] = rules::adasum{}({aa, ab, bb});
    return vec{a, b};
  };
  CHECK(weights(4, 2, 8) == vec{0.75, 0.875});  // 1 - 2/8, 1 - 2/16
  CHECK(weights(5, 0, 9) == vec{1, 1});         // orthogonal: the sum
  CHECK(weights(3, 3, 3) == vec{0.5, 0.5});     // equal: the mean
  CHECK(weights(4, -4, 4) == vec{1.5, 1.5});    // opposite: together zero
  CHECK(weights(0, 0, 9) == vec{1, 1});         // zero: the other vector
  CHECK(weights(0, 0, 0) == vec{1, 1});
}

TEST_CASE("adasum: the formula, pair by pair along the tree") {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 7u, 16u})
    for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::with_zeros}) {
      CAPTURE(n);
      const auto g = random_gradients<double>(n, 50, n, kind);
      auto nodes = g;
      for_each_merge(n, [&](std::size_t first, std::size_t middle, std::size_t) {
        nodes[first] = adasum_of(nodes[first], nodes[middle]);
      });
      CHECK(distance(combined(rules::adasum{}, g), nodes.front()) <= 1e-13 * norm_of(nodes.front()));
    }
}

TEST_CASE("adasum: has what every rule has; of two gradients, the order does not matter") {
  check_rule(rules::adasum{}, {.degree = 1, .symmetric = false});  // along the tree it does
  CHECK_NOTHROW(adasum::check_rule(rules::adasum{}, {.symmetric = true}));
}

}  // namespace test_of_rules_adasum
