// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/adacons.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_adacons {

using namespace adasum;
using namespace adasum::test;

namespace {

/// The four steps of the doc comment, on the vectors.
struct adacons_on_vectors {
  double momentum, epsilon = 1e-8;
  bool mean_norm = false, as_published = false;
  vec average{};

  vec operator()(const std::vector<vec>& g) {
    const auto n = g.size();
    vec mean(g.front().size(), 0), alpha(n);
    double mean_of_norms = 0;
    for (const auto& gradient : g) add(mean, 1 / static_cast<double>(n), gradient);
    for (std::size_t i = 0; i < n; ++i) mean_of_norms += norm_of(g[i]) / static_cast<double>(n);
    const double least = epsilon * mean_of_norms;
    for (std::size_t i = 0; i < n; ++i) alpha[i] = dot(g[i], mean) / (norm_of(g[i]) + least);
    auto sorted = alpha;
    std::ranges::sort(sorted);
    if (average.size() != n)
      average = sorted;
    else
      for (std::size_t k = 0; k < n; ++k) average[k] = momentum * average[k] + (1 - momentum) * sorted[k];
    vec smoothed(n);
    const auto place_of = [](const vec& in, double value) {
      return static_cast<std::size_t>(std::ranges::find(in, value) - in.begin());
    };
    for (std::size_t i = 0; i < n; ++i)
      smoothed[i] = average[as_published ? place_of(alpha, sorted[i]) : place_of(sorted, alpha[i])];
    const double sum = std::accumulate(smoothed.begin(), smoothed.end(), 0.0);
    vec result(mean.size(), 0);
    for (std::size_t i = 0; i < n; ++i)
      add(result, (mean_norm ? mean_of_norms : 1) * smoothed[i] / sum / (norm_of(g[i]) + least), g[i]);
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

TEST_CASE("adacons: the order of averages of the authors' code") {
  using adacons = rules::adacons;
  for (const double momentum : {0.0, 0.9})
    for (const std::size_t n : {2u, 3u, 8u}) {
      CAPTURE(momentum);
      CAPTURE(n);
      adacons rule{.momentum = momentum, .unsorting = adacons::unsort::as_published}, ours{.momentum = momentum};
      adacons_on_vectors reference{.momentum = momentum, .as_published = true};
      double furthest = 0;
      for (std::uint64_t call = 0; call < 4; ++call) {
        const auto g = agreeing(n, 10 * n + call);
        const auto expected = reference(g);
        CHECK(distance(combined(rule, g), expected) <= 1e-12 * norm_of(expected));
        furthest = std::max(furthest, distance(combined(ours, g), expected) / norm_of(expected));
      }
      // A permutation of two is its own inverse.
      CHECK((n == 2 ? furthest <= 1e-12 : furthest > 1e-3));
    }
}

TEST_CASE("adacons: where gradients do not agree, the mean, however short or long they are") {
  for (const double scale : {1e-200, 1e-7, 1.0, 1e150, 1e200}) {
    CAPTURE(scale);
    rules::adacons rule;
    // Two short ones against a long one: Σα < 0, and the mean is (2, 0).
    const auto result = combined(rule, std::vector<vec>{{8 * scale, 0}, {-scale, scale / 8}, {-scale, -scale / 8}});
    CHECK(rule.fallbacks == 1);
    CHECK(result[0] == doctest::Approx(2 * scale).epsilon(1e-14));
    CHECK(std::abs(result[1]) <= 1e-15 * scale);
  }
}

TEST_CASE("adacons: has what every rule has") {
  check_rule(rules::adacons{}, {.degree = 0, .one_is_itself = false});
  constexpr auto mean_norm = rules::adacons::scaling::mean_norm;
  check_rule(rules::adacons{.scale = mean_norm}, {.degree = 1});
  check_rule(rules::adacons{.scale = mean_norm, .per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e-130, 1e130, 1e170}) {
    check_scaled(rules::adacons{}, 0, scale);
    check_scaled(rules::adacons{.scale = mean_norm}, 1, scale);
  }
}

}  // namespace test_of_rules_adacons
