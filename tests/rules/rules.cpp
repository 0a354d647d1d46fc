// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules beyond adasum, sum and mean: each against an evaluation on the vectors themselves, which knows of no Gram
// matrix; what their sources promise; and inputs at the edge.
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

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

// ── adacons ──

namespace {

/// The four steps of the doc comment, on the vectors.
struct adacons_on_vectors {
  double momentum, epsilon = 1e-8;
  bool mean_norm = false;
  vec average{};

  vec operator()(const std::vector<vec>& g) {
    const auto n = g.size();
    vec mean(g.front().size(), 0), alpha(n);
    double mean_of_norms = 0;
    for (const auto& gradient : g) add(mean, 1 / static_cast<double>(n), gradient);
    for (std::size_t i = 0; i < n; ++i) {
      alpha[i] = dot(g[i], mean) / (norm_of(g[i]) + epsilon);
      mean_of_norms += norm_of(g[i]) / static_cast<double>(n);
    }
    auto sorted = alpha;
    std::ranges::sort(sorted);
    if (average.size() != n)
      average = sorted;
    else
      for (std::size_t k = 0; k < n; ++k) average[k] = momentum * average[k] + (1 - momentum) * sorted[k];
    vec smoothed(n);
    for (std::size_t i = 0; i < n; ++i)
      smoothed[i] = average[static_cast<std::size_t>(std::ranges::find(sorted, alpha[i]) - sorted.begin())];
    const double sum = std::accumulate(smoothed.begin(), smoothed.end(), 0.0);
    vec result(mean.size(), 0);
    for (std::size_t i = 0; i < n; ++i)
      add(result, (mean_norm ? mean_of_norms : 1) * smoothed[i] / sum / (norm_of(g[i]) + epsilon), g[i]);
    return result;
  }
};

/// Gradients that agree more or less, each with its own length.
std::vector<vec> agreeing(std::size_t n, std::uint64_t seed) {
  auto g = random_gradients<double>(n, 30, seed);
  uniform_numbers uniform(seed + 100);
  const auto common = uniform.vector(30);
  for (auto& gradient : g) {
    const double scale = 2 + uniform();
    for (std::size_t x = 0; x < 30; ++x) gradient[x] = scale * (common[x] + gradient[x] * 0.7);
  }
  return g;
}

}  // namespace

TEST_CASE("adacons: the four steps on the vectors, over several calls with momentum") {
  for (const double momentum : {0.0, 0.5, 0.99})
    for (const bool scaled : {false, true})
      for (const std::size_t n : {1u, 2u, 3u, 8u}) {
        CAPTURE(momentum);
        CAPTURE(scaled);
        CAPTURE(n);
        rules::adacons rule{.momentum = momentum,
                            .scale = scaled ? rules::adacons::scaling::mean_norm : rules::adacons::scaling::none};
        adacons_on_vectors reference{.momentum = momentum, .mean_norm = scaled};
        for (std::uint64_t call = 0; call < 4; ++call) {
          const auto g = agreeing(n, 10 * n + call);
          const auto expected = reference(g);
          CHECK(distance(combined(rule, g), expected) <= 1e-12 * norm_of(expected));
        }
        CHECK(rule.fallbacks == 0);
        CHECK(rule.sorted_average.size() == (momentum == 0 ? 0 : 1));
      }
}

TEST_CASE("adacons: state makes the difference, and a copy of it goes on alike") {
  rules::adacons rule{.momentum = 0.9};
  combined(rule, agreeing(4, 1));
  auto restored = rules::adacons{.momentum = 0.9};
  restored.sorted_average = rule.sorted_average;
  const auto next = combined(rule, agreeing(4, 2));
  CHECK(combined(restored, agreeing(4, 2)) == next);
  CHECK(distance(combined(rules::adacons{.momentum = 0.9}, agreeing(4, 2)), next) > 1e-4);
}

TEST_CASE("adacons: the whole model, or each segment by itself") {
  const auto g = agreeing(3, 5);
  const segments cut{10, 20};
  const auto of = [&](rules::adacons rule, const segments& segs) {
    vec out(30);
    const auto found = combine(serial_space{}, g, out, rule, segs);
    return std::pair(out, found);
  };
  const auto whole = of({}, cut);
  CHECK(distance(whole.first, of({}, segments{30}).first) <= 1e-13);
  CHECK(whole.second.weight(1, 0) == whole.second.weight(1, 1));
  const auto apart = of({.per_segment = true}, cut);
  CHECK(apart.second.weight(1, 0) != apart.second.weight(1, 1));
  std::vector<vec> last;
  for (const auto& gradient : g) last.emplace_back(gradient.begin() + 10, gradient.end());
  const auto expected = combined(rules::adacons{}, last);
  CHECK(distance(vec(apart.first.begin() + 10, apart.first.end()), expected) <= 1e-13);
}

TEST_CASE("adacons: gradients that do not agree give the mean, and it is counted") {
  const auto a = random_gradients<double>(1, 20, 3).front();
  auto b = a;
  for (double& x : b) x *= -1;
  rules::adacons rule;
  vec out(20);
  const auto found = combine(serial_space{}, std::vector{a, b}, out, rule);
  CHECK(out == vec(20, 0));
  CHECK(rule.fallbacks == 1);
  CHECK(found.fallbacks() == 1);
  CHECK(found.weight(0, 0) == 0.5);
}

// ── multi_krum ──

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

// ── all of them ──

TEST_CASE("every rule: scale, symmetry, one gradient, zeros, duplicates, dependent gradients") {
  check_rule(rules::unit_mean{}, {.degree = 0, .one_is_itself = false});
  // ε is added to norms of about 2.5, and does not scale with them: 1e-8 / (2.5 · 0.1).
  check_rule(rules::adacons{}, {.degree = 0, .one_is_itself = false, .accuracy = 1e-7, .widest_scale = 10});
  constexpr auto mean_norm = rules::adacons::scaling::mean_norm;
  check_rule(rules::adacons{.scale = mean_norm}, {.degree = 1, .accuracy = 1e-7, .widest_scale = 10});
  check_rule(rules::adacons{.scale = mean_norm, .per_segment = true},
             {.degree = 1, .accuracy = 1e-7, .widest_scale = 10});
  check_rule(rules::multi_krum{.selected = 2}, {.degree = 1});
  check_rule(rules::multi_krum{.byzantine = 1, .selected = 2, .per_segment = true}, {.degree = 1});
  check_rule(rules::adasum_linear{}, {.degree = 1, .symmetric = false});
}

TEST_CASE("squares beyond double: the direct way, by the rule's own degree") {
  for (const double scale : {1e-170, 1e170}) {
    check_scaled(rules::unit_mean{}, 0, scale);
    check_scaled(rules::multi_krum{.selected = 2}, 1, scale);
    check_scaled(rules::adasum_linear{}, 1, scale);
  }
}

TEST_CASE("a rule may choose a vector that is tiny beside the others") {
  std::vector<vec> g(4, vec{1, 0, 0});
  g[1] = {0, 1, 0};
  g[2] = g[3] = {0, 0, 1e-130};
  CHECK(combined(rules::multi_krum{.selected = 2}, g) == vec{0, 0, 1e-130});
}
