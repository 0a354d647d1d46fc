// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/gradient_agreement_filtering.hpp>

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

namespace test_of_rules_gradient_agreement_filtering {

using namespace adasum;
using namespace adasum::test;

namespace {

using rules::gradient_agreement_filtering;
constexpr auto halves = gradient_agreement_filtering::averages::halves;

}  // namespace

TEST_CASE("gradient_agreement_filtering: as in the authors' package, with averages of two") {
  // gradient-agreement-filtering 0.1.3: its filter, gradient after gradient, from the first; 0 if it takes none.
  check_published(gradient_agreement_filtering{.threshold = 0.9, .averaging = halves},
                  {{{0, 0, 0, 0, 0, 0},
                    {-1.2, -0.61, -1.58, -0.6, 0.2, -0.31},
                    {-0.0125, 1.36, 0.6525, 0.2275, 1.25875, 0.2275},
                    {0, 0, 0, 0, 0, 0}}},
                  1e-13);
  check_published(gradient_agreement_filtering{.threshold = 1.2, .averaging = halves},
                  {{{0, 0, 0, 0, 0, 0},
                    {-1.2, -0.61, -1.58, -0.6, 0.2, -0.31},
                    {0.29375, 0.65, 0.59125, -0.28125, 0.539375, 0.21375},
                    {0.44, 0.91, -0.83, 0.13, 0.32, -0.705}}},
                  1e-13);
  check_published(gradient_agreement_filtering{.threshold = 2.0, .averaging = halves},
                  {{{0.035, -0.265, -0.065, 0.065, -0.56, -0.36},
                    {-1.2, -0.61, -1.58, -0.6, 0.2, -0.31},
                    {0.29375, 0.65, 0.59125, -0.28125, 0.539375, 0.21375},
                    {-0.410625, -0.500375, 0.5335, 0.574, 0.696875, 0.441125}}},
                  1e-13);
}

TEST_CASE("gradient_agreement_filtering: with averages of all that were taken") {
  // numpy 2.4.6: the formula.
  check_published(gradient_agreement_filtering{.threshold = 0.9},
                  {{{0, 0, -0, -0, -0, -0},
                    {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666667, -0.143333333333333},
                    {0.022, 1.036, 0.72, -0.276, 0.78, 0.376},
                    {0, 0, -0, -0, 0, -0}}},
                  1e-13);
  check_published(gradient_agreement_filtering{.threshold = 1.2},
                  {{{0, 0, -0, -0, -0, -0},
                    {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666667, -0.143333333333333},
                    {0.022, 1.036, 0.72, -0.276, 0.78, 0.376},
                    {0.44, 0.91, -0.83, 0.13, 0.32, -0.705}}},
                  1e-13);
}

TEST_CASE("gradient_agreement_filtering: what agrees is averaged, in order") {
  // The third is opposed to the mean of the first two; the fourth is orthogonal to it.
  const std::vector<vec> g{{1, 0}, {1, 2}, {-3, 0}, {-1, 1}};
  CHECK(distance(weights_of(gradient_agreement_filtering{}, g), {1.0 / 3, 1.0 / 3, 0, 1.0 / 3}) <= 1e-15);
  CHECK(weights_of(gradient_agreement_filtering{.threshold = 0.97}, g) == vec{0.5, 0.5, 0, 0});
  CHECK(weights_of(gradient_agreement_filtering{.averaging = halves}, g) == vec{0.25, 0.25, 0, 0.5});
}

TEST_CASE("gradient_agreement_filtering: nothing agrees with the first: 0, counted; one alone is itself") {
  gradient_agreement_filtering rule;
  CHECK(weights_of(rule, {{1, 0}, {-1, 0.5}, {-1, -0.5}}) == vec{0, 0, 0});
  CHECK(rule.skipped == 1);
  CHECK(weights_of(rule, {{1, 0}}) == vec{1});
  CHECK(rule.skipped == 1);
}

TEST_CASE("gradient_agreement_filtering: zero gradients are passed over") {
  gradient_agreement_filtering rule;
  CHECK(weights_of(rule, {{0, 0}, {1, 0}, {0, 0}, {1, 1}}) == vec{0, 0.5, 0, 0.5});
  CHECK(weights_of(rule, {{0, 0}, {1, 0}}) == vec{0, 1});
  CHECK(weights_of(rule, {{0, 0}, {0, 0}}) == vec{0, 0});
  CHECK(rule.skipped == 0);
}

TEST_CASE("gradient_agreement_filtering: for the whole model, or for each segment") {
  const std::vector<vec> g{{1, 1}, {-1, 2}};
  vec out(2);
  combine(serial_space{}, g, out, gradient_agreement_filtering{}, segments{1, 1});
  CHECK(out == vec{0, 1.5});
  combine(serial_space{}, g, out, gradient_agreement_filtering{.threshold = 0.5, .per_segment = true}, segments{1, 1});
  CHECK(out == vec{0, 1.5});
  const auto apart = combine(serial_space{}, g, out, gradient_agreement_filtering{.per_segment = true}, segments{1, 1});
  CHECK(apart.weight(0, 0) == 0);
  CHECK(apart.weight(0, 1) == 0.5);
}

TEST_CASE("gradient_agreement_filtering: has what every rule has") {
  check_rule(gradient_agreement_filtering{.threshold = 1.2}, {.degree = 1, .symmetric = false, .widest_scale = 1e100});
  check_rule(gradient_agreement_filtering{.averaging = halves, .per_segment = true}, {.degree = 1, .symmetric = false});
  for (const double scale : {1e-170, 1e170}) check_scaled(gradient_agreement_filtering{.threshold = 1.2}, 1, scale);
}

}  // namespace test_of_rules_gradient_agreement_filtering
