// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/options.hpp"
#include "../../core/report_writer.hpp"
#include "../../core/stage.hpp"
#include "../numerics/nonfinite.hpp"
#include "engine_settings.hpp"
#include "small_exchanges.hpp"

namespace adasum::detail {

/// Which gradients take part in a reduction: all, or (nonfinite_policy::exclude and raise) those that are finite, which
/// every rank tells all others before anything changes. One that is cut is finite if all of its shards are.
class nonfinite_vote {
 public:
  /// @param settings  must outlive this object
  explicit nonfinite_vote(const engine_settings& settings)
      : ranks_(static_cast<std::size_t>(settings.comm.size())),
        gradients_(settings.gradients),
        segments_(settings.segments.size()),
        policy_(settings.nonfinite),
        leaf_ranks_(settings.leaf_ranks),
        takes_part_(gradients_.count(settings.comm.size()), true),
        flags_(is_decided() ? (ranks_ + 1) * segments_ : 0),
        of_gradients_(is_decided() && gradients_.are_cut() ? takes_part_.size() * segments_ : 0) {}

  /// Whether anything is to be decided in a run.
  bool is_decided() const { return policy_ != nonfinite_policy::propagate; }

  /// Room for this rank's flags: which segments of its gradient hold Inf or NaN.
  std::span<unsigned char> mine() { return std::span(flags_).last(segments_); }
  /// All ranks' flags, to all ranks.
  allgather exchanges(int rank, int size) {
    return {std::as_bytes(mine()), rank, size, std::as_writable_bytes(std::span(flags_).first(ranks_ * segments_))};
  }

  /// After these exchanges. @param found  is told which gradients are left out
  /// @throws nonfinite_error  one is, under nonfinite_policy::raise; on every rank
  void decide(report_writer& found) {
    std::ranges::fill(of_gradients_, 0);
    for (std::size_t rank = 0; rank < ranks_ && gradients_.are_cut(); ++rank) {
      const auto first = static_cast<std::size_t>(gradients_.of_rank(static_cast<int>(rank))) * segments_;
      for (std::size_t k = 0; k < segments_; ++k) of_gradients_[first + k] |= flags_[rank * segments_ + k];
    }
    for (std::size_t i = 0; i < takes_part_.size(); ++i) {
      const auto flags = all().subspan(i * segments_, segments_);
      takes_part_[i] = std::ranges::find(flags, 1) == flags.end();
      if (!takes_part_[i]) found.exclude(static_cast<int>(i));
    }
    if (policy_ == nonfinite_policy::raise && !found.get().excluded().empty()) throw_nonfinite();
  }

  bool of_rank(int rank) const { return takes_part_[static_cast<std::size_t>(gradients_.of_rank(rank))]; }
  /// How many gradients that take part are combined in the vector that member i brings to a stage.
  std::size_t gradients(const stage& stage, std::size_t i) const {
    std::size_t count = 0;
    for (auto leaf = stage.leaf_offsets[i]; leaf < stage.leaf_offsets[i + 1]; ++leaf)
      count += takes_part_[leaf_ranks_.empty() ? leaf : static_cast<std::size_t>(leaf_ranks_[leaf])];
    return count;
  }
  /// One flag for each segment of each gradient.
  std::span<const unsigned char> all() const {
    if (gradients_.are_cut()) return of_gradients_;
    return std::span(flags_).first(flags_.empty() ? 0 : ranks_ * segments_);
  }

 private:
  /// The others throw this, too; so does a rank that has no memory for the text.
  [[noreturn]] void throw_nonfinite() const {
    try {
      throw nonfinite_error({"adasum: Inf or NaN in the ", gradients_.are_cut() ? "shard of " : "gradient of ",
                             describe_nonfinite(std::span(flags_).first(ranks_ * segments_), segments_, "rank")});
    } catch (const std::bad_alloc&) {
      throw nonfinite_error(without_memory_);
    }
  }

  std::size_t ranks_;
  const shard_layout& gradients_;
  std::size_t segments_;
  nonfinite_policy policy_;
  std::span<const int> leaf_ranks_;          // which gradient is which leaf; empty: in the order of their numbers
  std::vector<bool> takes_part_;             // by gradient
  std::vector<unsigned char> flags_;         // of every rank, and behind them this one's
  std::vector<unsigned char> of_gradients_;  // where they are cut
  nonfinite_error without_memory_{"adasum: Inf or NaN in a gradient, and there is no memory to say in which"};
};

}  // namespace adasum::detail
