// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/named.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/named_rule_checks.hpp"

namespace test_of_rules_eigen_named {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("a rule that needs Eigen, by its name") {
  const auto& named = rules::named_with_eigen;
  check_named(named, "min_norm:tolerance=1e-6", rules::min_norm{.tolerance = 1e-6});
  check_named(named, "imtl_g:guard=1e-3", rules::imtl_g{.guard = 1e-3});
  check_named(named, "aligned_mtl", rules::aligned_mtl{});
  check_named(named, "upgrad:per_segment=yes", rules::upgrad{.per_segment = true});
  check_named(named, "dualproj:per_segment=yes", rules::dualproj{.per_segment = true});
  check_named(named, "conflict_free:guard=0.25,per_segment=yes",
              rules::conflict_free{.guard = 0.25, .per_segment = true});
  check_named(named, "cagrad:c=0.25,per_segment=yes", rules::cagrad{.c = 0.25, .per_segment = true});
  check_named(named, "nash_mtl:scale=mean_norm,per_segment=yes",
              rules::nash_mtl{.scale = rules::nash_mtl::scaling::mean_norm, .per_segment = true});
  check_named(named, "fairgrad:alpha=1,per_segment=yes", rules::fairgrad{.alpha = 1, .per_segment = true});
  check_named(named, "nearest_neighbour_mixing:byzantine=1,rule=cagrad",
              rules::nearest_neighbour_mixing<rules::cagrad>{.byzantine = 1});
  check_named(named, "mean", rules::mean{});
}

TEST_CASE("all rules are listed") {
  CHECK(
      rules::names_of_rules_with_eigen() ==
      "adasum, adasum_linear, sum, mean, unit_mean, adacons, multi_krum, geometric_median, centred_clipping, "
      "gradient_agreement_filtering, pcgrad, gradvac, min_norm, imtl_g, aligned_mtl, upgrad, dualproj, conflict_free, "
      "cagrad, nash_mtl, fairgrad, nearest_neighbour_mixing");
  CHECK(refusal_of(rules::named_with_eigen, "cagrad:d=1") ==
        "adasum: the rule cagrad: there is no 'd'; there are c, per_segment");
  CHECK(refusal_of(rules::named_with_eigen, "fairgrad:alpha=0") ==
        "adasum: the rule fairgrad: alpha is '0'; it must be a number above 0");
  for (const char* text : {"min_norm:tolerance=-1", "imtl_g:guard=-1", "conflict_free:guard=-1", "cagrad:c=-1"})
    CHECK(refusal_of(rules::named_with_eigen, text).find("it must be a number that is not negative") !=
          std::string::npos);
  CHECK(refusal_of(rules::named_with_eigen, "upgrad:d=1") ==
        "adasum: the rule upgrad: there is no 'd'; there is per_segment");
}

}  // namespace test_of_rules_eigen_named
