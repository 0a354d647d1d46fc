// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "options.hpp"
#include "report.hpp"

namespace adasum::detail {

/// Writes a report, which its readers cannot change.
class report_writer {
 public:
  report_writer() = default;
  /// An empty report with room for everything.
  report_writer(std::size_t contributions, std::size_t segments, std::string_view rule, std::string_view schedule)
      : report_(contributions, segments, rule, schedule) {}

  const report& get() const { return report_; }
  report release() && { return std::move(report_); }

  /// Gradient i's entries, one per segment; the rows of consecutive gradients lie one after the other.
  std::span<report::entry> row(std::size_t i) { return rows(i, i + 1); }
  std::span<report::entry> rows(std::size_t first, std::size_t last) {
    return {report_.entries_.data() + first * report_.segments_, (last - first) * report_.segments_};
  }
  std::span<double> result_norms() { return {report_.result_norms_.data(), report_.result_norms_.size()}; }
  void set_measured(bool measured) { report_.measured_ = measured; }
  /// Not all norms are known: none is told.
  void forget_norms() {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (auto& one : report_.entries_) one.norm = unknown;
    for (double& norm : report_.result_norms_) norm = unknown;
  }
  /// A new run: what is counted and collected during a run starts from nothing.
  void begin() {
    report_.recombined_segments_ = 0;
    report_.excluded_.clear();
  }
  void set_wire(wire_format wire) { report_.wire_ = wire; }
  void set_bytes_sent(std::size_t bytes) { report_.bytes_sent_ = bytes; }
  void count_recombined_segment() { ++report_.recombined_segments_; }
  void set_fallbacks(std::size_t fallbacks) { report_.fallbacks_ = fallbacks; }

  void reserve_excluded() { report_.excluded_.reserve(report_.contributions_); }
  /// For reorder(), which allocates nothing then.
  void reserve_order() { by_leaf_.reserve(report_.contributions_ * report_.segments_); }
  void exclude(int i) { report_.excluded_.push_back(i); }
  /// Excluded gradients weigh nothing, and their norms are Inf where their flags say so, 0 elsewhere: one flag for each
  /// segment of each gradient, one gradient after the other.
  void finish_excluded(std::span<const unsigned char> flags) {
    for (const int i : report_.excluded_) {
      const auto entries = row(static_cast<std::size_t>(i));
      for (std::size_t k = 0; k < entries.size(); ++k) {
        const bool is_finite = flags[static_cast<std::size_t>(i) * entries.size() + k] == 0;
        entries[k] = {is_finite ? 0 : std::numeric_limits<double>::infinity(), 0};
      }
    }
  }

  /// Rows are written in the order of leaves; row i becomes that of gradient gradient_of_leaf[i].
  void reorder(std::span<const int> gradient_of_leaf) {
    by_leaf_ = report_.entries_;
    for (std::size_t leaf = 0; leaf < report_.contributions_; ++leaf) {
      const auto to = row(static_cast<std::size_t>(gradient_of_leaf[leaf]));
      for (std::size_t k = 0; k < to.size(); ++k) to[k] = by_leaf_[leaf * report_.segments_ + k];
    }
  }

 private:
  report report_;
  std::vector<report::entry> by_leaf_;  // kept, so that a run allocates nothing
};

}  // namespace adasum::detail
