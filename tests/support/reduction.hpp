// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <adasum/core/report.hpp>
#include <adasum/core/segments.hpp>

#include "bits.hpp"
#include "same_findings.hpp"
#include "support/oracle_errors.hpp"

/// One reduction of known gradients, and what must hold of it on every rank.
namespace adasum::test {

/// The result of one rank.
template <scalar T>
struct reduced {
  std::vector<T> gradient;
  report found;
};

/// The exact result and how far a distributed one may be from it.
///
/// The errors of oracle_errors.hpp grow along the tree from sources at its nodes. Pair by pair, a node adds what
/// pairwise_error counts; inside a stage of more than two members, what gram_error counts. A schedule may mix the two
/// kinds of stages, and a segment may be combined directly in some of them. The recursion E_v(E_a, E_b, source) is
/// increasing and subadditive, so the sum of the two bounds holds for every mixture.
struct expectation {
  std::size_t contributions;
  bounded_oracle exact;
  std::vector<real> bounds{};
  std::vector<std::vector<oracle_node>> leaves{};  // of each segment

  template <scalar T, class Rule, gradient_list Gradients>
  static expectation of(const Rule& rule, const Gradients& gradients, segments_view segs) {
    expectation expected{gradients.size(), oracle_with_errors<T>(rule, gradients, segs)};
    for (std::size_t k = 0; k < segs.size(); ++k) {
      expected.bounds.push_back(expected.exact.gram_error[k] + expected.exact.pairwise_error[k]);
      expected.leaves.push_back(oracle_leaves(gradients, segs.range(k)));
    }
    return expected;
  }
};

/// The result is the oracle's, and the report tells the truth about it.
template <scalar T>
void check_reduced(const reduced<T>& got, const expectation& expected, segments_view segs) {
  CHECK(worst_error_over_bound(got.gradient, expected.exact.values, expected.bounds, segs) <= 1);

  const auto& report = got.found;
  REQUIRE(report.contributions() == expected.contributions);
  REQUIRE(report.segments() == segs.size());
  CHECK(report.measured());
  CHECK(report.finite());
  for (std::size_t k = 0; k < segs.size(); ++k) {
    const auto [begin, end] = segs.range(k);
    const auto& leaves = expected.leaves[k];
    const real eta = inner_product_error<T>(2, end - begin);  // the largest, of float lanes
    real mass = 0;
    real_vector exact(expected.exact.values.begin() + static_cast<std::ptrdiff_t>(begin),
                      expected.exact.values.begin() + static_cast<std::ptrdiff_t>(end));
    const real exact_norm = norm(exact);
    real_vector& difference = exact;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const auto weight = static_cast<real>(report.weight(i, k)), leaf_norm = leaves[i].mass;
      // √A is off by at most |ΔA|/√A, and |ΔA| <= ηA.
      CHECK(std::abs(static_cast<real>(report.norm(i, k)) - leaf_norm) <= eta * leaf_norm);
      for (std::size_t x = 0; x < exact.size(); ++x) difference[x] -= weight * leaves[i].value[x];
      mass += std::abs(weight) * leaf_norm;
    }
    CHECK(norm(difference) <= expected.bounds[k]);
    // ‖result‖² is a quadratic form in inner products of the last stage, whose vectors are no longer than their masses:
    // off by at most δ = (η + 8u)·mass². Its root is off by at most √δ, and by δ/‖result‖.
    const real square_error = (eta + 8 * unit_of_double) * mass * mass;
    const real root_error = std::min(std::sqrt(square_error), exact_norm > 0 ? square_error / exact_norm : mass);
    CHECK(std::abs(static_cast<real>(report.result_norm(k)) - exact_norm) <= expected.bounds[k] + root_error);
  }
}

/// All ranks hold the same bits, and were told the same.
template <scalar T>
void check_same_on_all_ranks(const std::vector<reduced<T>>& ranks) {
  for (const auto& rank : ranks) {
    CHECK(same_bits(rank.gradient, ranks.front().gradient));
    CHECK(same_findings(rank.found, ranks.front().found));
  }
}

}  // namespace adasum::test
