// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/norms.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_every_rule {

/// What concerns all rules that need no other library. What holds for a rule by itself is in the file of its name.

using namespace adasum;
using namespace adasum::test;

TEST_CASE("a report tells rules apart by their names") {
  const auto names = [](const auto&... rule) { return std::multiset<std::string>{std::string(rule.name)...}; };
  const auto all = names(rules::adacons{}, rules::adasum{}, rules::adasum_linear{}, rules::centred_clipping{},
                         rules::geometric_median{}, rules::gradient_agreement_filtering{}, rules::gradvac{},
                         rules::mean{}, rules::multi_krum{}, rules::nearest_neighbour_mixing<rules::mean>{},
                         rules::nearest_neighbour_mixing<rules::geometric_median>{}, rules::pcgrad{}, rules::sum{},
                         rules::unit_mean{});
  CHECK(all.size() == 14);
  for (const auto& name : all) CHECK(all.count(name) == 1);
}

TEST_CASE("parameters: those that docs/rules.md lists, with these defaults, each of which ranks compare") {
  using list = std::vector<double>;
  using rules::adacons, rules::multi_krum, rules::gradient_agreement_filtering;
  CHECK(parameters_of(adacons{}) == list{0, 1e-8, 0, 0, 1e-6, 0});
  CHECK(parameters_of(adacons{.momentum = 0.5,
                              .epsilon = 0.25,
                              .scale = adacons::scaling::mean_norm,
                              .per_segment = true,
                              .guard = 0.125,
                              .unsorting = adacons::unsort::as_published}) == list{0.5, 0.25, 1, 1, 0.125, 1});
  CHECK(parameters_of(multi_krum{}) == list{0, 1, 0, 0, 0});
  CHECK(parameters_of(multi_krum{.byzantine = 2,
                                 .selected = 3,
                                 .per_segment = true,
                                 .neighbours = multi_krum::neighbourhood::byzfl,
                                 .distance = multi_krum::metric::plain}) == list{2, 3, 1, 1, 1});
  CHECK(parameters_of(rules::nearest_neighbour_mixing<rules::mean>{}) == list{0});
  CHECK(parameters_of(rules::nearest_neighbour_mixing<multi_krum>{.byzantine = 2, .rule = {.selected = 3}}) ==
        list{2, 0, 3, 0, 0, 0});
  CHECK(parameters_of(rules::geometric_median{}) == list{1e-6, 100, 0});
  CHECK(parameters_of(rules::geometric_median{.smoothing = 0.5, .iterations = 7, .per_segment = true}) ==
        list{0.5, 7, 1});
  CHECK(parameters_of(rules::centred_clipping{}) == list{1, 3, 0});
  CHECK(parameters_of(rules::centred_clipping{.radius = 0.5, .iterations = 7, .per_segment = true}) == list{0.5, 7, 1});
  CHECK(parameters_of(gradient_agreement_filtering{}) == list{1, 0, 0});
  CHECK(parameters_of(gradient_agreement_filtering{
            .threshold = 0.5, .averaging = gradient_agreement_filtering::averages::halves, .per_segment = true}) ==
        list{0.5, 1, 1});
  // A seed in two halves: double does not hold all 64 bits.
  constexpr std::uint64_t seed = (std::uint64_t{3} << 32) + 0xfffffffeu;
  CHECK(parameters_of(rules::pcgrad{}) == list{0, 0, 0, 0});
  CHECK(parameters_of(rules::pcgrad{.seed = seed, .average = true, .per_segment = true}) == list{3, 0xfffffffeu, 1, 1});
  CHECK(parameters_of(rules::gradvac{}) == list{0.01, 0, 1e-8, 0, 0, 0, 0});
  CHECK(parameters_of(rules::gradvac{
            .beta = 0.5, .target = 0.25, .epsilon = 0.125, .seed = seed, .average = true, .per_segment = true}) ==
        list{0.5, 0.25, 0.125, 3, 0xfffffffeu, 1, 1});
}

TEST_CASE("the whole model has one set of weights, unless a rule is told otherwise") {
  check_whole_model(rules::adacons{}, rules::adacons{.per_segment = true});
  check_whole_model(rules::centred_clipping{}, rules::centred_clipping{.per_segment = true});
  check_whole_model(rules::geometric_median{}, rules::geometric_median{.per_segment = true});
  check_whole_model(rules::gradient_agreement_filtering{}, rules::gradient_agreement_filtering{.per_segment = true});
  check_whole_model(rules::gradvac{}, rules::gradvac{.per_segment = true});
  check_whole_model(rules::multi_krum{}, rules::multi_krum{.per_segment = true});
  check_whole_model(rules::nearest_neighbour_mixing<rules::multi_krum>{},
                    rules::nearest_neighbour_mixing<rules::multi_krum>{.rule = {.per_segment = true}});
  check_whole_model(rules::pcgrad{}, rules::pcgrad{.per_segment = true});
  CHECK(rules::nearest_neighbour_mixing<rules::mean>{}.whole_model());  // the neighbours are those of whole models
}

TEST_CASE("a rule that looks at no inner product has none measured, unless they are asked for") {
  const auto g = random_gradients<double>(3, 20, 12);
  vec out(20);
  const auto measured = [&](const auto& rule, measuring measure) {
    return combine(serial_space{}, g, out, rule, options{.measure = measure}).measured();
  };
  CHECK_FALSE(measured(rules::mean{}, measuring::when_needed));
  CHECK_FALSE(measured(rules::sum{}, measuring::when_needed));
  CHECK(measured(rules::mean{}, measuring::always));
  CHECK(measured(rules::sum{}, measuring::always));
  CHECK(measured(rules::unit_mean{}, measuring::when_needed));
  CHECK(measured(rules::adasum{}, measuring::when_needed));
}

TEST_CASE("squares beyond double: the result scales by the rule's own degree") {
  for (const double scale : {1e-170, 1e170}) {
    check_scaled(rules::adasum{}, 1, scale);
    check_scaled(rules::adasum_linear{}, 1, scale);
    check_scaled(rules::mean{}, 1, scale);
    check_scaled(rules::multi_krum{.selected = 2}, 1, scale);
    check_scaled(rules::sum{}, 1, scale);
    check_scaled(rules::unit_mean{}, 0, scale);
  }
}

// Those whose distances nearly cancel.
static_assert(needs_accurate_gram<rules::geometric_median> && needs_accurate_gram<rules::centred_clipping>);
// Those that promise a result whatever some ranks send.
static_assert(leaves_out_nonfinite<rules::multi_krum> && leaves_out_nonfinite<rules::geometric_median> &&
              leaves_out_nonfinite<rules::centred_clipping> &&
              leaves_out_nonfinite<rules::nearest_neighbour_mixing<rules::mean>>);

TEST_CASE("one gradient's one segment holds NaN: what each policy does under each rule") {
  check_one_nonfinite_segment(rules::adasum{});
  check_one_nonfinite_segment(rules::adasum_linear{});
  check_one_nonfinite_segment(rules::mean{});
  check_one_nonfinite_segment(rules::sum{});
  check_one_nonfinite_segment(rules::unit_mean{});
  for (const bool per_segment : {false, true}) {
    check_one_nonfinite_segment(rules::adacons{.momentum = 0.5, .per_segment = per_segment});
    check_one_nonfinite_segment(rules::centred_clipping{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::geometric_median{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::gradient_agreement_filtering{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::gradvac{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::multi_krum{.selected = 2, .per_segment = per_segment});
    check_one_nonfinite_segment(
        rules::nearest_neighbour_mixing<rules::geometric_median>{.byzantine = 1, .rule = {.per_segment = per_segment}});
    check_one_nonfinite_segment(rules::pcgrad{.per_segment = per_segment});
  }
  check_one_nonfinite_segment(rules::nearest_neighbour_mixing<rules::mean>{.byzantine = 1});
}

TEST_CASE("a rule that is not asked about NaN keeps its state") {
  auto g = random_gradients<double>(3, 20, 12);
  vec out(20);
  rules::pcgrad whole, each{.per_segment = true};
  rules::adacons average{.momentum = 0.5};
  g[1][9] = std::numeric_limits<double>::quiet_NaN();
  combine(serial_space{}, g, out, whole, segments{6, 8, 6});
  combine(serial_space{}, g, out, each, segments{6, 8, 6});
  combine(serial_space{}, g, out, average, segments{6, 8, 6});
  CHECK(whole.calls.empty());
  CHECK(each.calls == std::vector<std::uint64_t>{1, 0, 1});
  CHECK(average.sorted_average.empty());
}

TEST_CASE("norms at a ratio of 1e160: weights and results are finite, and no longer than the rule makes them") {
  const auto check = [](const auto& rule, double times_longest) {
    CAPTURE(std::string(rule.name));
    for (const std::vector<double>& norms :
         {std::vector<double>{1, 1e-160}, {1e80, 1e-80}, {1e160, 1}, {1e-150, 1e10, 1e-150}}) {
      CAPTURE(norms.back());
      const auto g = with_norms<double>(5, 20, norms, gradient_kind::independent, 3);
      auto used = rule;
      for (const double weight : weights_of(used, g)) CHECK(std::isfinite(weight));
      used = rule;
      const double bound = times_longest * (degree_of(rule) == 0 ? 1 : *std::ranges::max_element(norms));
      CHECK(norm_of(times({combined(used, g)}, 1 / bound).front()) <= 1 + 1e-9);
    }
  };
  check(rules::adasum{}, 5);
  check(rules::adasum_linear{}, 5);
  check(rules::mean{}, 1);
  check(rules::sum{}, 5);
  check(rules::unit_mean{}, 1);
  check(rules::adacons{}, 1 / rules::adacons{}.guard);
  check(rules::adacons{.scale = rules::adacons::scaling::mean_norm}, 1 / rules::adacons{}.guard);
  check(rules::centred_clipping{}, 1);
  check(rules::geometric_median{}, 1);
  check(rules::gradient_agreement_filtering{}, 1);
  check(rules::gradvac{}, 25);
  check(rules::multi_krum{.selected = 2}, 1);
  check(rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1}, 1);
  check(rules::pcgrad{}, 25);
}

}  // namespace test_of_rules_every_rule
