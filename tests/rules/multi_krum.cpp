// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/multi_krum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

using namespace adasum;
using namespace adasum::test;

namespace {

vec multi_krum_on_vectors(const std::vector<vec>& g, std::size_t f, std::size_t m) {
  const auto n = g.size();
  std::vector<std::pair<double, std::size_t>> scores;
  for (std::size_t i = 0; i < n; ++i) {
    vec distances;
    for (std::size_t j = 0; j < n; ++j)
      if (j != i) distances.push_back(std::pow(distance(g[i], g[j]), 2));
    std::ranges::sort(distances);
    scores.emplace_back(
        std::accumulate(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(n - f - 2), 0.0), i);
  }
  std::ranges::sort(scores);
  vec result(g.front().size(), 0);
  for (std::size_t k = 0; k < m; ++k) add(result, 1 / static_cast<double>(m), g[scores[k].second]);
  return result;
}

}  // namespace

TEST_CASE("multi_krum: the mean of those with the nearest neighbours") {
  for (const std::size_t n : {5u, 7u, 12u})
    for (const std::size_t f : {0u, 1u})
      for (const std::size_t m : {1u, 3u, 5u}) {
        const auto g = random_gradients<double>(n, 15, n + f);
        const auto expected = multi_krum_on_vectors(g, f, m);
        CHECK(distance(combined(rules::multi_krum{.byzantine = f, .selected = m}, g), expected) <= 1e-13);
      }
}

TEST_CASE("multi_krum: whatever f ranks send, they are not chosen") {
  auto g = random_gradients<double>(9, 15, 1, gradient_kind::near_parallel);
  for (double& x : g[2]) x = -1e6 * x;
  for (double& x : g[7]) x += 50;
  const auto c = weights_of(rules::multi_krum{.byzantine = 2, .selected = 5}, g);
  CHECK(c[2] == 0);
  CHECK(c[7] == 0);
  CHECK(std::ranges::count(c, 0.2) == 5);
}

TEST_CASE("multi_krum: of equals the first, never more than there are") {
  const std::vector<vec> equal(4, vec{1, 2, 3});
  CHECK(weights_of(rules::multi_krum{.selected = 2}, equal) == vec{0.5, 0.5, 0, 0});
  CHECK(weights_of(rules::multi_krum{.byzantine = 9, .selected = 9}, equal) == vec{0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("multi_krum: may choose a vector that is tiny beside the others") {
  std::vector<vec> g(4, vec{1, 0, 0});
  g[1] = {0, 1, 0};
  g[2] = g[3] = {0, 0, 1e-130};
  CHECK(combined(rules::multi_krum{.selected = 2}, g) == vec{0, 0, 1e-130});
}

TEST_CASE("multi_krum: has what every rule has") {
  check_rule(rules::multi_krum{.selected = 2}, {.degree = 1});
  check_rule(rules::multi_krum{.byzantine = 1, .selected = 2, .per_segment = true}, {.degree = 1});
}
