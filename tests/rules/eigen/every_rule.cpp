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

#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_every_rule {

using namespace adasum;
using namespace adasum::test;

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
