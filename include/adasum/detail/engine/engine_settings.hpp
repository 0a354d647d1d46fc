// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "../../core/options.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../../schedules/transfers.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"

namespace adasum::detail {

/// How a reduction sends its data: by messages, and in memory that the ranks share where the plan asks for it.
struct transport_settings {
  wire_format wire = wire_format::same;
  std::chrono::duration<double> timeout = std::chrono::seconds(60);
  bool in_shared_memory = false;
  bool rounds_own = false;  ///< as messages are, a rank's own elements, too
  /// Called just before that memory is made: where ranks wait for each other, and may find that one of them has failed
  /// or disagrees. Whatever else can fail on one rank is done before or after both.
  /// @param bytes  of this rank. @return the most that one needs: all ranks ask for as much
  std::function<std::size_t(std::size_t bytes)> before_sharing{};
};

/// What each rank is to get of the result, if not all of it (schedules/parts_of_result.hpp).
struct parts_of_result {
  std::vector<index_range> wanted{};  ///< by rank; empty: every rank gets all of it
  transfers to_owners{};              ///< how this rank gets and gives them, where that takes messages

  bool to_every_rank() const { return wanted.empty(); }
};

/// What ranks know of whole gradients, where each has a shard of one (core/parts.hpp).
struct shard_layout {
  std::vector<int> replica_of_rank{};  ///< whose gradient; empty: every rank has one of its own, and all of it
  std::size_t replicas = 0;            ///< how many
  std::vector<std::size_t> lengths{};  ///< of their segments
  /// The segments that count on another rank, though they are here, too.
  std::vector<std::size_t> measured_elsewhere{};

  bool are_cut() const { return !replica_of_rank.empty(); }
  /// How many gradients are combined among so many ranks.
  std::size_t count(int ranks) const { return are_cut() ? replicas : static_cast<std::size_t>(ranks); }
  /// Which of them this rank has.
  int of_rank(int rank) const { return are_cut() ? replica_of_rank[static_cast<std::size_t>(rank)] : rank; }
};

/// What an executor is told when it is made: what the stages are, and how to go about them.
struct engine_settings {
  space_ref space;
  communicator_ref comm;
  rule_ref rule;
  rule_ref inner_rule;  ///< is copied
  bool has_inner_rule;
  segments_view segments;  ///< of what outlives the executor
  std::vector<stage> stages;
  std::string_view schedule_name;
  std::vector<int> leaf_ranks{};  ///< which gradient is which leaf; empty: in the order of their numbers
  bool measure = true;            ///< whether rules that need no Gram matrix are measured all the same
  nonfinite_policy nonfinite = nonfinite_policy::propagate;
  transport_settings transport{};
  parts_of_result parts{};
  shard_layout gradients{};
};

}  // namespace adasum::detail
