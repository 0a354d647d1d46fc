// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/geometric_median.hpp>
#include <adasum/rules/gradvac.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/multi_krum.hpp>
#include <adasum/rules/nearest_neighbour_mixing.hpp>
#include <adasum/rules/unit_mean.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_nearest_neighbour_mixing {

using namespace adasum;
using namespace adasum::test;

using rules::nearest_neighbour_mixing;

TEST_CASE("nearest_neighbour_mixing: as in ByzFL, before the mean and before the geometric median") {
  // byzfl 0.0.11: NNM(1), then the mean; GeometricMedian(nu = 0.1 · median length of what NNM gives, T = 3).
  check_published(nearest_neighbour_mixing<rules::mean>{.byzantine = 1},
                  {{{0.035, -0.265, -0.065, 0.065, -0.56, -0.36},
                    {-0.746666666666667, -0.47, -1.89333333333333, -0.58, 0.116666666666667, -0.17},
                    {0.0495, 0.989, 0.7045, -0.408, 0.6125, 0.437},
                    {-0.16875, -0.2855, 0.221, 0.14025, 0.677, -0.109}}},
                  1e-12);
  check_published(
      nearest_neighbour_mixing<rules::geometric_median>{.byzantine = 1, .rule = {.smoothing = 0.1, .iterations = 3}},
      {{{0.0344526441954138, -0.256164113440251, -0.068205941141148, 0.0500650059034324, -0.558279738899872,
         -0.369852404482552},
        {-0.702173469455206, -0.372595973672207, -1.78991671278778, -0.648543574082521, 0.396853557214516,
         -0.299872035103724},
        {0.0117846085008001, 1.00757507784642, 0.76175272861173, -0.511729097357258, 0.562892846882277,
         0.489346021050517},
        {0.0244529942911968, -0.398040744174622, -0.389038454474454, -0.256782153268409, 1.00592809778076,
         0.163899229436315}}},
      1e-12);
  check_published(
      nearest_neighbour_mixing<rules::geometric_median>{.byzantine = 0, .rule = {.smoothing = 0.1, .iterations = 3}},
      {{{0.035, -0.265, -0.065, 0.065, -0.56, -0.36},
        {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666667, -0.143333333333333},
        {0.022, 1.036, 0.72, -0.276, 0.78, 0.376},
        {-0.895, -0.5216, 2.1916, 1.1634, 0.154, -0.6012}}},
      1e-12);
}

namespace {

/// Each gradient's n - f nearest, averaged.
std::vector<vec> mixed(const std::vector<vec>& g, std::size_t f) {
  std::vector<vec> result;
  for (const auto& own : g) {
    auto sorted = g;
    std::ranges::stable_sort(sorted, {}, [&](const vec& other) { return distance(own, other); });
    vec mean(own.size(), 0);
    for (std::size_t k = 0; k < g.size() - f; ++k) add(mean, 1 / static_cast<double>(g.size() - f), sorted[k]);
    result.push_back(mean);
  }
  return result;
}

template <class Rule>
void check_on_vectors(const Rule& rule) {
  for (const std::size_t n : {3u, 5u, 9u})
    for (const std::size_t f : {0u, 1u, 2u}) {
      CAPTURE(std::string(Rule::name));
      const auto g = random_gradients<double>(n, 20, n + f);
      const auto expected = combined(Rule(rule), mixed(g, f));
      CHECK(distance(combined(nearest_neighbour_mixing<Rule>{.byzantine = f, .rule = rule}, g), expected) <=
            1e-9 * norm_of(expected));
    }
}

}  // namespace

TEST_CASE("nearest_neighbour_mixing: the rule on the mixed vectors themselves") {
  check_on_vectors(rules::mean{});
  check_on_vectors(rules::adasum{});
  check_on_vectors(rules::unit_mean{});
  check_on_vectors(rules::multi_krum{.byzantine = 1, .selected = 2});
  check_on_vectors(rules::geometric_median{.iterations = 5});
  check_on_vectors(rules::gradvac{.beta = 0.5});
}

TEST_CASE("nearest_neighbour_mixing: has its rule's name, parameters, degree, state and fallbacks") {
  using mixed_krum = nearest_neighbour_mixing<rules::multi_krum>;
  CHECK(std::string(mixed_krum::name) == "nnm_multi_krum");
  CHECK(mixed_krum{.byzantine = 7, .rule = {.selected = 3}}.parameters() == vec{7, 0, 3, 0, 0, 0});
  CHECK(nearest_neighbour_mixing<rules::mean>{.byzantine = 7}.parameters() == vec{7});
  CHECK(degree_of(nearest_neighbour_mixing<rules::unit_mean>{}) == 0);
  CHECK(nearest_neighbour_mixing<rules::mean>{}.whole_model());
  CHECK(mixed_krum{}.whole_model());
  CHECK(!mixed_krum{.rule = {.per_segment = true}}.whole_model());
  nearest_neighbour_mixing<rules::gradvac> stateful;
  weights_of(stateful, {{1, 2}, {3, -4}});
  CHECK(stateful.rule.calls == std::vector<std::uint64_t>{1});
}

TEST_CASE("nearest_neighbour_mixing: what lies far off is mixed into nothing but itself") {
  auto g = random_gradients<double>(7, 15, 1, gradient_kind::near_parallel);
  for (double& x : g[2]) x = -1e6 * x;
  const auto c = weights_of(nearest_neighbour_mixing<rules::mean>{.byzantine = 1}, g);
  CHECK(c[2] == doctest::Approx(1.0 / 42));
}

TEST_CASE("nearest_neighbour_mixing: has what every rule has") {
  check_rule(nearest_neighbour_mixing<rules::mean>{.byzantine = 1}, {.degree = 1, .widest_scale = 1e100});
  check_rule(nearest_neighbour_mixing<rules::unit_mean>{.byzantine = 1},
             {.degree = 0, .one_is_itself = false, .accuracy = 1e-7});
  check_rule(nearest_neighbour_mixing<rules::adasum>{.byzantine = 2}, {.degree = 1, .symmetric = false});
  for (const double scale : {1e-170, 1e170})
    check_scaled(nearest_neighbour_mixing<rules::geometric_median>{.byzantine = 1}, 1, scale);
}

}  // namespace test_of_rules_nearest_neighbour_mixing
