// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/centred_clipping.hpp>

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

namespace test_of_rules_centred_clipping {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("centred_clipping: as in ByzFL") {
  // byzfl 0.0.11: CenteredClipping(L = 1, tau = 0.8 · median length), and (L = 3, tau = median length).
  check_published(rules::centred_clipping{.radius = 0.8, .iterations = 1},
                  {{{0.0271377157495108, -0.201775772458486, -0.0537245685009783, 0.0394352866357292,
                     -0.439746707888175, -0.291325953537601},
                    {-0.797404565349151, -0.462924061717437, -1.34359356537668, -0.424616943472368, 0.0144307127624257,
                     -0.141991900842016},
                    {0.0758830586791311, 0.798425320435119, 0.529133488051486, -0.199766579767269, 0.604450100806948,
                     0.290078457599494},
                    {-0.0817109649443682, -0.024840801279116, 0.105400972131913, 0.16955369293321, 0.296215007695126,
                     -0.11076100111481}}},
                  1e-12);
  check_published(rules::centred_clipping{},
                  {{{0.035, -0.265, -0.065, 0.065, -0.56, -0.36},
                    {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666666, -0.143333333333333},
                    {0.022, 1.036, 0.72, -0.276, 0.78, 0.376},
                    {-0.129818973228164, -0.0989276012641553, 0.201239531538834, 0.20846718756148, 0.507694469140778,
                     -0.218161729117288}}},
                  1e-12);
}

TEST_CASE("centred_clipping: the mean where nothing is clipped") {
  const auto c = weights_of(rules::centred_clipping{.radius = 100}, random_gradients<double>(5, 10, 1));
  for (const double weight : c) CHECK(weight == doctest::Approx(0.2).epsilon(1e-14));
}

TEST_CASE("centred_clipping: a rank moves the result by no more than the clipped length in each iteration") {
  auto g = random_gradients<double>(9, 15, 1);
  vec lengths;
  for (const auto& gradient : g) lengths.push_back(norm_of(gradient));
  const double longest = std::ranges::max(lengths);
  const auto before = combined(rules::centred_clipping{}, g);
  for (const double factor : {-1e3, 1e6, 1e12, -1e100}) {
    for (double& x : g[4]) x = factor;
    // Two times in each of three iterations: what it sends now and what it sent before.
    CHECK(distance(combined(rules::centred_clipping{}, g), before) <= 3 * 2 * longest / 9);
  }
}

TEST_CASE("centred_clipping: a zero gradient counts as one; where they are half, the result is 0") {
  const auto c = weights_of(rules::centred_clipping{.radius = 3}, {{1, 0}, {0, 0}, {0, 1}});
  CHECK(c[0] == doctest::Approx(1.0 / 3));
  CHECK(combined(rules::centred_clipping{}, {{0, 0}, {5, 0}, {0, 0}, {7, 1}}) == vec{0, 0});
}

TEST_CASE("centred_clipping: one set of weights for the whole model, or one for each segment") {
  const std::vector<vec> g{{1, 1}, {1, 2}, {9, 3}};
  vec out(2);
  const auto whole = combine(serial_space{}, g, out, rules::centred_clipping{}, segments{1, 1});
  CHECK(whole.weight(2, 0) == whole.weight(2, 1));
  const rules::centred_clipping apart{.per_segment = true};
  const auto found = combine(serial_space{}, g, out, apart, segments{1, 1});
  CHECK(found.weight(2, 0) == doctest::Approx(weights_of(apart, {{1}, {1}, {9}})[2]).epsilon(1e-14));
  CHECK(found.weight(2, 0) != found.weight(2, 1));
}

TEST_CASE("centred_clipping: has what every rule has") {
  check_rule(rules::centred_clipping{}, {.degree = 1, .widest_scale = 1e100});
  check_rule(rules::centred_clipping{.radius = 2, .iterations = 10, .per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::centred_clipping{}, 1, scale);
}

}  // namespace test_of_rules_centred_clipping
