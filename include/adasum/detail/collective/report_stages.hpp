// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "../../core/report_writer.hpp"
#include "../../core/stage.hpp"
#include "../local/combine_window.hpp"

namespace adasum::detail {

/// The report of a reduction, written stage by stage: what is known of gradients travels with the vectors that combine
/// them, so that it is the same on every rank in the end.
class report_stages {
 public:
  explicit report_stages(report_writer empty) : report_(std::move(empty)) { report_.reserve_excluded(); }

  /// Before the first run in which gradients are in another order than ranks.
  void reserve_order() { report_.reserve_order(); }

  report_writer& written() { return report_; }
  const report& last() const { return report_.get(); }

  /// A run begins, before which the rule had fallen back so often.
  void begin(std::size_t fallbacks) {
    report_.begin();
    fallbacks_before_ = fallbacks;
  }
  /// A run ends. @param leaf_ranks  which rank's gradient is which leaf; empty: each its own
  void finish(std::span<const int> leaf_ranks, std::span<const unsigned char> excluded, std::size_t bytes_sent,
              std::size_t fallbacks) {
    if (!leaf_ranks.empty()) report_.reorder(leaf_ranks);
    report_.finish_excluded(excluded);
    report_.set_bytes_sent(bytes_sent);
    report_.set_fallbacks(fallbacks - fallbacks_before_);
  }

  /// What is known of some gradients.
  std::span<report::entry> known_of(index_range leaves) { return report_.rows(leaves.begin, leaves.end); }

  /// Segment k has been combined. Weights multiply along the path from a gradient to the root.
  void note(const stage& stage, std::size_t k, const segment_outcome& outcome, bool measured) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const auto first = stage.leaf_offsets[i], last = stage.leaf_offsets[i + 1];
      if (last - first == 1)
        report_.row(first)[k] = {measured ? outcome.norms[i] : unknown, outcome.weights[i]};
      else
        for (auto leaf = first; leaf < last; ++leaf) report_.row(leaf)[k].weight *= outcome.weights[i];
    }
    report_.result_norms()[k] = measured ? outcome.result_norm : unknown;
    if (outcome.recombined) report_.count_recombined_segment();
  }

 private:
  report_writer report_;
  std::size_t fallbacks_before_ = 0;
};

}  // namespace adasum::detail
