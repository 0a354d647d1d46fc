// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/multi_krum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_multi_krum {

using namespace adasum;
using namespace adasum::test;

namespace {

vec multi_krum_on_vectors(const std::vector<vec>& g, std::size_t m, std::size_t neighbours, double power) {
  const auto n = g.size();
  std::vector<std::pair<double, std::size_t>> scores;
  for (std::size_t i = 0; i < n; ++i) {
    vec distances;
    for (std::size_t j = 0; j < n; ++j)
      if (j != i) distances.push_back(std::pow(distance(g[i], g[j]), power));
    std::ranges::sort(distances);
    scores.emplace_back(
        std::accumulate(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(neighbours), 0.0), i);
  }
  std::ranges::sort(scores);
  vec result(g.front().size(), 0);
  for (std::size_t k = 0; k < m; ++k) add(result, 1 / static_cast<double>(m), g[scores[k].second]);
  return result;
}

}  // namespace

TEST_CASE("multi_krum: the mean of those with the nearest neighbours, by every count and distance") {
  using krum = rules::multi_krum;
  for (const std::size_t n : {5u, 7u, 12u})
    for (const std::size_t f : {0u, 1u})
      for (const std::size_t m : {1u, 3u, 5u})
        for (const bool as_byzfl : {false, true})
          for (const bool plain : {false, true}) {
            const auto g = random_gradients<double>(n, 15, n + f);
            const auto expected = multi_krum_on_vectors(g, m, n - f - (as_byzfl ? 1 : 2), plain ? 1 : 2);
            const krum rule{.byzantine = f,
                            .selected = m,
                            .neighbours = as_byzfl ? krum::neighbourhood::byzfl : krum::neighbourhood::krum,
                            .distance = plain ? krum::metric::plain : krum::metric::squared};
            CHECK(distance(combined(rule, g), expected) <= 1e-13);
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

namespace {

/// Honest gradients that differ by vectors of length 1, and three others: one is zero, one lies 20 beside the honest ones,
/// and one holds NaN. All but the zero have a part of length 1e8 in common.
template <class T>
std::vector<std::vector<T>> with_common_part(std::size_t honest) {
  const auto own = random_gradients<double>(honest + 1, 30, 9);
  std::vector<std::vector<T>> g;
  for (const auto& d : own) {
    auto v = times({d}, 1 / norm_of(d)).front();
    if (g.size() == honest) v = times({v}, 20).front();
    v[3] = 1e8;  // the others' elements are not rounded beside it, in floats either
    g.emplace_back(v.begin(), v.end());
  }
  g.insert(g.begin(), std::vector<T>(30));  // the first: differences from it say nothing
  g.push_back(g.back());
  g.back()[7] = std::numeric_limits<T>::quiet_NaN();
  return g;
}

template <class Space, class T>
void check_common_part(const Space& space) {
  const auto g = with_common_part<T>(9);
  std::vector<vec> finite;
  for (const auto& gradient : g)
    if (!std::isnan(gradient[7])) finite.emplace_back(gradient.begin(), gradient.end());
  const auto expected = multi_krum_on_vectors(finite, 4, finite.size() - 2 - 2, 2);
  for (const bool per_segment : {false, true}) {
    CAPTURE(per_segment);
    std::vector<T> out(30);
    const auto found =
        combine(space, g, out, rules::multi_krum{.byzantine = 2, .selected = 4, .per_segment = per_segment});
    CHECK(distance(vec(out.begin(), out.end()), expected) <=
          1e8 * 2 * unit_roundoff(format_of<T>));  // the common part is rounded, at least
    CHECK(found.weight(0, 0) == 0);                // zero
    CHECK(found.weight(10, 0) == 0);               // beside the honest ones
    CHECK(found.weight(11, 0) == 0);               // NaN
    vec out_of_segment(out.begin(), out.end()), rest = expected;
    out_of_segment[3] = rest[3] = 0;
    CHECK(distance(out_of_segment, rest) <= 4 * unit_roundoff(format_of<T>));
  }
}

}  // namespace

TEST_CASE("multi_krum: however large a part the gradients have in common, their differences decide") {
  check_common_part<serial_space, double>(serial_space{});
  check_common_part<serial_space, float>(serial_space{});
}

TEST_CASE("multi_krum: Inf, NaN and numbers whose squares overflow are left out, in whatever segment they are") {
  const auto honest = random_gradients<double>(6, 15, 1, gradient_kind::near_parallel);
  const rules::multi_krum rule{.byzantine = 2, .selected = 3};
  const auto expected = combined(rule, honest);
  for (const double sent :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e200, -1e150})
    for (const std::size_t at : {0u, 14u}) {
      CAPTURE(sent);
      CAPTURE(at);
      auto g = honest;
      g.insert(g.begin() + 2, honest[0]);
      g.push_back(honest[1]);
      g[2][at] = g.back()[at] = sent;
      CHECK(combined(rule, g) == expected);
      vec out(15);
      const auto found = combine(serial_space{}, g, out, rule, segments{10, 5});
      CHECK(out == expected);
      CHECK(found.weight(2, 0) == 0);
      CHECK(found.weight(7, 1) == 0);
      CHECK(found.result_norm(0) == doctest::Approx(norm_of(vec(out.begin(), out.begin() + 10))));
    }
  const std::vector<vec> all(3, vec{std::numeric_limits<double>::quiet_NaN()});
  CHECK(std::isnan(combined(rule, all)[0]));
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

}  // namespace test_of_rules_multi_krum
