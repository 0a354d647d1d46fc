// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules that need Eigen, against their definitions in 128 bits (../reference/convex_definitions.hpp).
#include "../reference/convex_definitions.hpp"

namespace test_of_rules_eigen_reference {

using namespace adasum;
using namespace adasum::test::reference;

namespace {

constexpr auto defined = [](const quad_matrix& g, const auto& rule, const quads&) { return define(rule, g); };
constexpr auto solved = [](const quad_matrix& g, const auto& rule, const quads& w) { return define(rule, g, w); };
const std::vector<std::size_t> all{1, 2, 3, 5, 8, 17, 33, 64};

}  // namespace

TEST_CASE("in 128 bits: imtl_g, conflict_free, aligned_mtl") {
  compare_types(rules::imtl_g{}, defined, all, 0.2);
  compare_types(rules::conflict_free{}, defined, all, 0.2);
  // Of dependent gradients, the singular values that are not zero are rounding errors of the gradients.
  compare_types(rules::aligned_mtl{}, defined, all, 0.2, {family::ordinary, family::opposed});
}

TEST_CASE("in 128 bits: min_norm, dualproj, upgrad") {
  compare_types(rules::min_norm{}, solved, all);
  compare_types(rules::dualproj{}, solved, all);
  // One program for each gradient: of many gradients, what takes a few seconds.
  compare_types(rules::upgrad{}, solved, {1, 2, 3, 5, 8, 17});
  compare_all<double>(rules::upgrad{}, solved, {33, 64}, 0, {family::opposed});
}

TEST_CASE("in 128 bits: cagrad, where the gradients are independent") {
  compare_types(rules::cagrad{}, solved, all, 0.2, {family::ordinary, family::opposed, family::badly_scaled});
}

TEST_CASE("in 128 bits: nash_mtl, fairgrad") {
  // Of dependent gradients, many have no solution, which is checked; where it is barely there, weights grow without end.
  compare_types(rules::nash_mtl{}, solved, all, 0.8);
  compare_types(rules::fairgrad{}, solved, all, 0.8, of_like_lengths);
}

}  // namespace test_of_rules_eigen_reference
