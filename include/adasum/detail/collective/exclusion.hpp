// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/options.hpp"
#include "../../core/report_writer.hpp"
#include "../../core/stage.hpp"
#include "../local/nonfinite.hpp"
#include "allgather.hpp"

namespace adasum::detail {

/// Which ranks take part in a reduction: all, or (nonfinite_policy::exclude and raise) those whose gradients are
/// finite, which every rank tells all others before anything changes.
class exclusion {
 public:
  /// @param leaf_ranks  which rank's gradient is which leaf; empty: each its own; must outlive this object
  exclusion(std::size_t ranks, std::size_t segments, nonfinite_policy policy, std::span<const int> leaf_ranks)
      : ranks_(ranks),
        segments_(segments),
        policy_(policy),
        leaf_ranks_(leaf_ranks),
        takes_part_(ranks, true),
        flags_(is_decided() ? (ranks + 1) * segments : 0) {}

  /// Whether anything is to be decided in a run.
  bool is_decided() const { return policy_ != nonfinite_policy::propagate; }

  /// Room for this rank's flags: which segments of its gradient hold Inf or NaN.
  std::span<unsigned char> mine() { return std::span(flags_).last(segments_); }
  /// All ranks' flags, to all ranks.
  allgather exchanges(int rank, int size) {
    return {std::as_bytes(mine()), rank, size, std::as_writable_bytes(std::span(flags_).first(ranks_ * segments_))};
  }

  /// After these exchanges. @param found  is told which ranks are left out
  /// @throws nonfinite_error  one is, under nonfinite_policy::raise; on every rank
  void decide(report_writer& found) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      const auto flags = all().subspan(r * segments_, segments_);
      takes_part_[r] = std::ranges::find(flags, 1) == flags.end();
      if (!takes_part_[r]) found.exclude(static_cast<int>(r));
    }
    if (policy_ == nonfinite_policy::raise && !found.get().excluded().empty()) throw_nonfinite();
  }

  bool of_rank(int rank) const { return takes_part_[static_cast<std::size_t>(rank)]; }
  /// How many gradients that take part are combined in the vector that member i brings to a stage.
  std::size_t gradients(const stage& stage, std::size_t i) const {
    std::size_t count = 0;
    for (auto leaf = stage.leaf_offsets[i]; leaf < stage.leaf_offsets[i + 1]; ++leaf)
      count += takes_part_[leaf_ranks_.empty() ? leaf : static_cast<std::size_t>(leaf_ranks_[leaf])];
    return count;
  }
  /// One flag for each segment of each rank.
  std::span<const unsigned char> all() const {
    return std::span(flags_).first(flags_.empty() ? 0 : ranks_ * segments_);
  }

 private:
  /// The others throw this, too, and end the run. So a rank that has no memory for the text must throw nothing else: as one
  /// that fails, it would wait for them.
  [[noreturn]] void throw_nonfinite() const {
    try {
      throw nonfinite_error("adasum: Inf or NaN in the gradient of " + describe_nonfinite(all(), segments_, "rank"));
    } catch (const std::bad_alloc&) {
      throw nonfinite_error(without_memory_);
    }
  }

  std::size_t ranks_, segments_;
  nonfinite_policy policy_;
  std::span<const int> leaf_ranks_;
  std::vector<bool> takes_part_;      // by rank
  std::vector<unsigned char> flags_;  // of every rank, and behind them this one's
  nonfinite_error without_memory_{"adasum: Inf or NaN in a gradient, and there is no memory to say in which"};
};

}  // namespace adasum::detail
