// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "../core/combine_window.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"

namespace adasum::detail {

/// The report of a reduction, written stage by stage: what is known of gradients travels with the vectors that combine
/// them, so that it is the same on every rank in the end.
class stage_report {
 public:
  using row_span = std::span<report::entry>;

  explicit stage_report(report empty) : report_(std::move(empty)) { report_.reserve_excluded(); }

  report& written() { return report_; }
  const report& written() const { return report_; }

  /// What is known of the gradients that member i brings: nothing yet of a single one.
  row_span known_of(const stage& level, std::size_t i) {
    const auto first = level.leaves[i], last = level.leaves[i + 1];
    return last - first > 1 ? report_.rows(first, last) : row_span{};
  }
  /// What is known of all gradients.
  row_span known_of_all() { return report_.rows(0, report_.contributions()); }

  /// Segment k has been combined. Weights multiply along the path from a gradient to the root.
  void note(const stage& level, std::size_t k, const segment_outcome& outcome, bool measured) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < level.members.size(); ++i) {
      const auto first = level.leaves[i], last = level.leaves[i + 1];
      if (last - first == 1)
        report_.row(first)[k] = {measured ? outcome.norms[i] : unknown, outcome.weights[i]};
      else
        for (auto leaf = first; leaf < last; ++leaf) report_.row(leaf)[k].weight *= outcome.weights[i];
    }
    report_.result_norms()[k] = measured ? outcome.result_norm : unknown;
    if (outcome.direct) report_.count_direct_segment();
  }

 private:
  report report_;
};

}  // namespace adasum::detail
