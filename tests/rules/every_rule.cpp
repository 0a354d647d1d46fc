// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/rule_checks.hpp"

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
