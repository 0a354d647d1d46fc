// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_rule takes rules that are right (those of the library: tests/rules/), and finds planted faults.
#include <doctest/doctest.h>

#include <adasum/rules/adasum.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/testing.hpp>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/complete_types.hpp"
#include "support/foreign.hpp"
#include "support/refusal.hpp"

namespace test_of_testing_rule {

using namespace adasum;
using namespace adasum::test;

namespace {

struct pairwise {
  static constexpr std::string_view name = "pairwise";
  std::function<pair_weights(const pair_gram&)> weights;
  pair_weights operator()(const pair_gram& gram) const { return weights(gram); }
};

struct of_all {
  static constexpr std::string_view name = "of all";
  std::function<void(gram_view, std::span<double>)> weigh;
  void operator()(gram_view gram, std::span<double> weights) const { weigh(gram, weights); }
};

/// Looks at inner products, and denies it.
struct says_none : rules::adasum {
  static constexpr inner_products needs = inner_products::none;
};

}  // namespace

TEST_CASE("rules that are right") {
  const question_counts asked;
  CHECK_NOTHROW(check_rule(rules::adasum{}, {.symmetric = true}));
  CHECK_NOTHROW(check_rule(rules::sum{}, {.symmetric = true}));
  CHECK_NOTHROW(check_rule(rules::mean{}, {.symmetric = true}));
  CHECK_NOTHROW(check_rule(minimal_pairwise_rule(1)));
  CHECK_NOTHROW(check_rule(minimal_gram_rule(1)));
  CHECK_NOTHROW(check_rule(complete_pairwise_rule{asked}, {.symmetric = true}));
  CHECK_NOTHROW(check_rule(complete_gram_rule{asked}, {.symmetric = true}));
  CHECK(asked.of(asked_for::degree) > 0);
  CHECK(check_rule(minimal_gram_rule(1)).empty());
  CHECK(check_rule(complete_pairwise_rule{asked}) ==
        std::vector<std::string>{"needs", "whole_model", "degree", "fallbacks"});
  CHECK(check_rule(complete_gram_rule{asked}) == std::vector<std::string>{"needs", "rule(gram, weights, k)",
                                                                          "whole_model", "leaves_out_nonfinite",
                                                                          "degree", "parameters", "fallbacks"});
  CHECK_NOTHROW(check_rule(longest{}));
}

TEST_CASE("copies that differ") {
  int calls = 0;
  const pairwise counts{[&](const pair_gram&) { return pair_weights{static_cast<double>(++calls), 1}; }};
  check_refused([&] { check_rule(counts); }, "two copies of it");
}

TEST_CASE("weights that are not finite") {
  const pairwise by_norm{[](const pair_gram& g) { return pair_weights{1 / g.aa * g.aa, 1}; }};
  check_refused([&] { check_rule(by_norm); }, "all zero");
  const pairwise by_sum{[](const pair_gram& g) {
    const double square = g.aa + 2 * g.ab + g.bb;
    return pair_weights{g.aa > 0 ? g.aa / square : 0, g.bb > 0 ? g.bb / square : 0};
  }};
  check_refused([&] { check_rule(by_sum); }, "opposite vectors");
  const pairwise divides{[](const pair_gram& g) { return pair_weights{g.aa * g.aa > 0 ? g.aa / g.bb : 0, 1}; }};
  check_refused([&] { check_rule(divides); }, "zero among others");
  check_refused([] { check_rule(mean_of_units{}); }, "all zero");
}

TEST_CASE("a weight too few, and one too many") {
  const of_all forgets{[](gram_view g, std::span<double> weights) {
    for (std::size_t i = 1; i < g.size(); ++i) weights[i] = 1;
  }};
  check_refused([&] { check_rule(forgets); }, "does not write every weight");
  const of_all exceeds{[](gram_view g, std::span<double> weights) {
    for (std::size_t i = 0; i <= g.size(); ++i) weights.data()[i] = 1;
  }};
  check_refused([&] { check_rule(exceeds); }, "past the end");
}

TEST_CASE("claims that are not true") {
  check_refused([] { check_rule(says_none{}); }, "says that it needs none");

  struct unit : mean_of_units {
    void operator()(gram_view gram, std::span<double> weights) const {
      for (std::size_t i = 0; i < gram.size(); ++i) weights[i] = gram(i, i) > 0 ? 1 / std::sqrt(gram(i, i)) : 0;
    }
  };
  check_refused([] { check_rule(unit{}); }, "degree(), which is 1");
  struct of_degree_0 : unit {
    int degree() const { return 0; }
  };
  CHECK_NOTHROW(check_rule(of_degree_0{}, {.symmetric = true}));

  const pairwise first{[](const pair_gram&) { return pair_weights{1, 0}; }};
  CHECK_NOTHROW(check_rule(first));
  check_refused([&] { check_rule(first, {.symmetric = true}); }, "order of the vectors");
  const of_all first_of_all{[](gram_view, std::span<double> weights) {
    std::ranges::fill(weights, 0.0);
    weights[0] = 1;
  }};
  check_refused([&] { check_rule(first_of_all, {.symmetric = true}); }, "order of the vectors");
}

}  // namespace test_of_testing_rule
