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

TEST_CASE("in 128 bits: pcgrad") { compare_types(rules::pcgrad{.seed = 5}, defined); }

TEST_CASE("in 128 bits: gradvac, and the usual cosines that it keeps") {
  const auto compare_from = [](const rules::gradvac& before, const std::vector<std::size_t>& numbers) {
    compare_types(
        before,
        [&](const quad_matrix& g, const rules::gradvac& after, const quads&) { return define(before, g, after); },
        numbers);
  };
  compare_from({.seed = 5}, usual_numbers);
  compare_from({.beta = 0.5, .target = 0.25, .seed = 6}, usual_numbers);
  // In a later call, each pair has a cosine of its own.
  for (const std::size_t n : {2u, 3u, 8u, 33u}) {
    auto usual = adasum::test::uniform_numbers(n).vector(n * n);
    for (double& cosine : usual) cosine *= 0.5;
    compare_from({.beta = 0.25, .seed = 7, .targets = {usual}, .calls = {3}}, {n});
  }
}

TEST_CASE("in 128 bits: geometric_median, centred_clipping") {
  compare_types(rules::geometric_median{}, defined, usual_numbers, 0.1);
  compare_types(rules::centred_clipping{}, defined);
}

}  // namespace test_of_rules_reference
