// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What concerns all rules that need Eigen.
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/cagrad.hpp>
#include <adasum/rules/eigen/conflict_free.hpp>
#include <adasum/rules/eigen/dualproj.hpp>
#include <adasum/rules/eigen/fairgrad.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>
#include <adasum/rules/eigen/nash_mtl.hpp>
#include <adasum/rules/eigen/upgrad.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_every_rule {

using namespace adasum;
using namespace adasum::test;

// They solve systems with the Gram matrix, which magnifies its errors.
static_assert(needs_accurate_gram<rules::aligned_mtl> && needs_accurate_gram<rules::cagrad> &&
              needs_accurate_gram<rules::conflict_free> && needs_accurate_gram<rules::dualproj> &&
              needs_accurate_gram<rules::fairgrad> && needs_accurate_gram<rules::imtl_g> &&
              needs_accurate_gram<rules::min_norm> && needs_accurate_gram<rules::nash_mtl> &&
              needs_accurate_gram<rules::upgrad>);

TEST_CASE("parameters of rules that need Eigen: those that docs/rules.md lists, which ranks compare") {
  using list = std::vector<double>;
  CHECK(parameters_of(rules::min_norm{}) == list{1e-13});
  CHECK(parameters_of(rules::min_norm{.tolerance = 0.5}) == list{0.5});
  CHECK(parameters_of(rules::imtl_g{}) == list{1e-6});
  CHECK(parameters_of(rules::imtl_g{.guard = 0.5}) == list{0.5});
  CHECK(parameters_of(rules::cagrad{}) == list{0.5, 0});
  CHECK(parameters_of(rules::cagrad{.c = 0.25, .per_segment = true}) == list{0.25, 1});
  CHECK(parameters_of(rules::conflict_free{}) == list{1e-6, 0});
  CHECK(parameters_of(rules::conflict_free{.guard = 0.25, .per_segment = true}) == list{0.25, 1});
  CHECK(parameters_of(rules::dualproj{}) == list{0});
  CHECK(parameters_of(rules::dualproj{.per_segment = true}) == list{1});
  CHECK(parameters_of(rules::fairgrad{}) == list{2, 0});
  CHECK(parameters_of(rules::fairgrad{.alpha = 0.5, .per_segment = true}) == list{0.5, 1});
  CHECK(parameters_of(rules::nash_mtl{}) == list{0, 0});
  CHECK(parameters_of(rules::nash_mtl{.scale = rules::nash_mtl::scaling::mean_norm, .per_segment = true}) ==
        list{1, 1});
  CHECK(parameters_of(rules::upgrad{}) == list{0});
  CHECK(parameters_of(rules::upgrad{.per_segment = true}) == list{1});
}

TEST_CASE("the whole model has one set of weights under rules that need Eigen, unless they are told otherwise") {
  check_whole_model(rules::cagrad{}, rules::cagrad{.per_segment = true});
  check_whole_model(rules::conflict_free{}, rules::conflict_free{.per_segment = true});
  check_whole_model(rules::dualproj{}, rules::dualproj{.per_segment = true});
  check_whole_model(rules::fairgrad{}, rules::fairgrad{.per_segment = true});
  check_whole_model(rules::nash_mtl{}, rules::nash_mtl{.per_segment = true});
  check_whole_model(rules::upgrad{}, rules::upgrad{.per_segment = true});
}

TEST_CASE("one gradient's one segment holds NaN: what each policy does under each rule that needs Eigen") {
  check_one_nonfinite_segment(rules::aligned_mtl{});
  check_one_nonfinite_segment(rules::imtl_g{});
  check_one_nonfinite_segment(rules::min_norm{});
  for (const bool per_segment : {false, true}) {
    check_one_nonfinite_segment(rules::cagrad{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::conflict_free{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::dualproj{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::fairgrad{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::nash_mtl{.per_segment = per_segment});
    check_one_nonfinite_segment(rules::upgrad{.per_segment = per_segment});
  }
}

}  // namespace test_of_rules_eigen_every_rule
