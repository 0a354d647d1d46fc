// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules that need no other library, against their definitions in 128 bits (reference/definitions.hpp).
#include "reference/definitions.hpp"

#include <adasum/rules/nearest_neighbour_mixing.hpp>

namespace test_of_rules_reference {

using namespace adasum;
using namespace adasum::test::reference;

namespace {

constexpr auto defined = [](const quad_matrix& g, const auto& rule, const quads&) { return define(rule, g); };

}  // namespace

TEST_CASE("in 128 bits: sum, mean, unit_mean") {
  compare_types(rules::sum{}, defined);
  compare_types(rules::mean{}, defined);
  compare_types(rules::unit_mean{}, defined);
}

TEST_CASE("in 128 bits: adasum, along the tree and in a row") {
  // Of collinear gradients, some cancel all but exactly.
  compare_types(rules::adasum{}, defined, usual_numbers, 0.1);
  compare_types(rules::adasum_linear{}, defined, usual_numbers, 0.1);
}

TEST_CASE("in 128 bits: adacons") {
  compare_types(rules::adacons{}, defined);
  compare_types(rules::adacons{.scale = rules::adacons::scaling::mean_norm}, defined);
}

TEST_CASE("in 128 bits: multi_krum, gradient_agreement_filtering") {
  compare_types(rules::multi_krum{.byzantine = 1, .selected = 2}, defined, usual_numbers, 0.1, of_like_lengths);
  compare_types(rules::gradient_agreement_filtering{}, defined);
}

TEST_CASE("in 128 bits: nearest_neighbour_mixing, by the definition of the rule on the mixed gradients") {
  // Weights of mixed gradients are those of their neighbours, so the errors are in units of the neighbours' masses.
  const auto mixing = [](const quad_matrix& g, const auto& rule, const quads& weights) {
    bool near = false;
    auto expected = define(rule.rule, mixed(g, rule.byzantine, near));
    expected.excluded = expected.excluded || near;
    expected.error += mass(g, weights);
    return expected;
  };
  compare_types(rules::nearest_neighbour_mixing<rules::mean>{.byzantine = 1}, mixing, usual_numbers, 0.2,
                of_like_lengths);
  compare_types(
      rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1, .rule = {.byzantine = 1, .selected = 2}},
      mixing, usual_numbers, 0.3, of_like_lengths);
}

TEST_CASE("in 128 bits: pcgrad") { compare_types(rules::pcgrad{.seed = 5}, defined, {1, 2, 3, 4, 5, 8, 13, 24}); }

TEST_CASE("in 128 bits: geometric_median, centred_clipping") {
  compare_types(rules::geometric_median{}, defined, {1, 2, 3, 4, 5, 8, 13, 24}, 0.1);
  compare_types(rules::centred_clipping{}, defined);
}

}  // namespace test_of_rules_reference
