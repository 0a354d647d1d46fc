// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/communicator_state.hpp"
#include "../../core/stay_loaded.hpp"
#include "../../core/waiting.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/shared_window_ref.hpp"
#include "call_signature.hpp"
#include "small_exchanges.hpp"
#include "transport/shared_barriers.hpp"
#include "transport/shared_memory_layout.hpp"

namespace adasum::detail {

/// Thrown where a rank has announced something else than this one, waits for all votes, or votes by messages.
struct ranks_differ {};

/// Every rank's vote to all ranks, merged, in memory that all of them share, in place of messages. The communicator keeps it, so
/// that ranks meet here whatever each of them is about to do; all of them do, or none does.
///
/// There are two ways to vote. Ranks that wait for all votes know them at the end:
///
///     begin(mine); do arrived(true); while (next()); … all() …
///
/// Where all ranks meet at a barrier anyway before any of them changes anything, and only those that do the same meet at that
/// one, a rank need not wait here, too:
///
///     begin(mine); … wait at the other barrier, and call require_same() now and then … pass();
///
/// If that throws ranks_differ, nobody comes through the other barrier. The rank leaves it, and then waits for all votes after
/// all. Some ranks may know by then that not all do the same, or that some wait for all votes at once; so where that is so, there
/// is a second barrier: after it, all ranks have left whatever they were about to do.
template <class Memory>
class votes_in_memory {
 public:
  /// Before anything else.
  void open(Memory memory, int rank, const communicator_state* state = nullptr) {
    const auto ranks = std::size(memory.ranks());
    barriers_.emplace(std::move(memory), rank, sizes(ranks), 0, no_timeout, state);
    std::vector<std::size_t> all(ranks);
    std::iota(all.begin(), all.end(), std::size_t{0});
    pattern_ = barrier_pattern(all, barriers_->self(), barrier_radix);
  }
  /// Bytes of each of so many ranks.
  static std::size_t bytes_for(std::size_t ranks) {
    return shared_memory_layout<Memory>::bytes_for(sizes(ranks), ranks);
  }

  /// @param announces  this rank will wait at the other barrier, if follows_failure() is false
  void begin(const setup_vote& mine, bool announces = false) {
    state_ = mine;
    is_known_ = false;
    follows_failure_ = std::exchange(failed_, false);
    barriers_->begin_run();
    state_.flags |= announces && !follows_failure_ ? setup_vote::announces : setup_vote::waits;
    // With the number of the vote: a rank that is already at the next one may say there what this one says here.
    const auto number = barriers_->next_run();
    mine_ = hash(std::bit_cast<std::array<std::uint64_t, sizeof state_ / sizeof(std::uint64_t)>>(state_), number);
    barriers_->publish_copy(std::as_bytes(std::span(&state_, 1)));
    barriers_->say(mine_);
    barriers_->arrive(pattern_);
  }

  /// Whether this round of waiting is over. @param block  wait until it is
  /// @throws communication_error, timeout_error  as a barrier does; no rank waits for this one then
  bool arrived(bool block) {
    try {
      if (!block) return barriers_->all_arrived();
      barriers_->await_all(time_limit::never);
      return true;
    } catch (...) {
      fail();
      throw;
    }
  }
  /// @return whether there is another round
  bool next() {
    if (is_known_) {
      if (barriers_->next_round()) return true;
    } else {
      learn();
      if (barriers_->next_round(std::as_bytes(std::span(&state_, 1)))) return true;
      is_known_ = true;
      if (!state_.is_good() || state_.has(setup_vote::runs_differ) || some_announced()) {
        barriers_->arrive(pattern_);
        return true;
      }
    }
    barriers_->end_run();
    return false;
  }
  const setup_vote& all() const { return state_; }

  /// @throws ranks_differ         see above; or another rank waits for all votes
  /// @throws communication_error  a rank has failed since it has told its vote
  void require_same() const {
    for (std::size_t i = 0; i < barriers_->size(); ++i)
      if (barriers_->has_said_other_than(mine_, i)) throw ranks_differ();
    if (has_lost_a_rank()) throw ranks_differ();
    barriers_->require_none_failed();
  }
  /// All ranks have met.
  void pass() { barriers_->end_run(); }
  /// The same, if all ranks have told what this one has told. For a rank that has failed, and waits no longer.
  /// @return whether they have; otherwise this is fail(): some may be about to do something else
  bool pass_if_same() {
    const bool is_same = barriers_->all_have_said(mine_);
    is_same ? pass() : fail();
    return is_same;
  }
  /// This rank will not wait for the others' votes. (It does not wait until they have read its own, either: that is overwritten
  /// two votes later at the earliest.)
  void fail() {
    failed_ = true;
    barriers_->fail();
  }
  /// Whether the vote before this one has failed on this rank. Then it must wait for all votes: a rank that left out a call may
  /// be a vote behind, and come to the other barrier in one that this rank has left.
  bool follows_failure() const { return follows_failure_; }

  /// Whether a rank has dropped this memory, so that from now on all ranks vote by messages.
  bool has_lost_a_rank() const { return barriers_->has_lost_a_rank(); }

 private:
  /// Whether some ranks have waited at the other barrier, and have left it because others wait for all votes.
  bool some_announced() const { return state_.has(setup_vote::announces) && state_.has(setup_vote::waits); }
  void learn() {
    const bool is_only_round = pattern_.rounds() == 1;
    for (const auto i : barriers_->heard()) {
      if (is_only_round && barriers_->said(i) == mine_) continue;  // nothing new, and no cache line to wait for
      setup_vote heard;
      std::memcpy(&heard, barriers_->heard_copy(i), sizeof heard);
      state_.learn(heard);
    }
  }
  static shared_sizes sizes(std::size_t ranks) {
    return {.sums = (sizeof(setup_vote) + sizeof(double) - 1) / sizeof(double),
            .rounds = sum_order(ranks, 0, barrier_radix).exchanges()};
  }

  std::optional<shared_barriers<Memory>> barriers_;
  barrier_pattern pattern_;
  setup_vote state_;
  bool failed_ = false, follows_failure_ = false;
  bool is_known_ = false;   // whether that is what all have told
  std::uint64_t mine_ = 0;  // the word of this rank: see begin
};

/// Memory of a communicator's ranks for that: a type of its own, so that the model check can tell its barriers from a plan's.
struct votes_window : any_window {};

class shared_votes : public votes_in_memory<votes_window> {
 public:
  shared_votes() { stay_loaded(); }  // see kept_plans::call

  /// Before anything else. Collective. @return whether all ranks share the memory
  /// @throws shared_memory_error  there is no room; on all ranks
  bool share(const communicator_ref& comm) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    auto memory = comm.share(bytes_for(ranks));
    const bool is_of_all = memory.ranks().size() == ranks;
    open({std::move(memory)}, comm.rank(), comm.state());
    return is_of_all;
  }
};

/// Where waiting for votes has failed. @return whether a rank has dropped its part of the memory: then, from now on, this one
/// votes by messages, too
inline bool votes_by_messages_now(const communicator_ref& comm) {
  if (!comm.votes()->has_lost_a_rank()) return false;
  comm.state()->set_votes(nullptr);
  return true;
}

}  // namespace adasum::detail
