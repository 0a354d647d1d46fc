// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/shared_votes.hpp>

#include "ranks.hpp"
#include "scenario.hpp"
#include "window.hpp"

namespace adasum::test::model {

/// What a rank tells the others that it is about to do, and hears of them: see detail/engine/shared_votes.hpp.
class voter {
 public:
  /// @param reach  reach(place): see checkpoint
  voter(const scenario& one, std::size_t self, std::function<void(unsigned)> reach)
      : one_(one), self_(self), reach_(std::move(reach)) {
    if (one.what == work::votes || one.what == work::setups) votes_.open({{one.ranks}}, static_cast<int>(self));
  }

  /// They only tell each other, and in the first run, each rank tells something else. @return whether the run is a good one
  bool set_up(std::size_t run) {
    const auto mine = [&](std::size_t rank) { return run == 1 ? rank : 0; };
    votes_.begin({.intent = 1, .bytes = mine(self_)});
    const bool good = wait_for_all();
    require(votes_.all().bytes == mine(one_.ranks - 1), "a vote is not heard");
    return good;
  }
  /// Before a run. @return whether it may begin
  bool tell_the_others(std::size_t run) {
    const bool deviates = one_.differs.rank == self_ && one_.differs.run == run;
    const bool waits = deviates && one_.differs.in_full;
    const bool differs = deviates && !one_.differs.only_waits;
    votes_.begin({.intent = 2 * run + differs}, !waits);
    if (differs) be_another();
    announced_ = !waits && !differs;
    return !differs && (announced_ || wait_for_all());
  }
  /// While it waits at the first barrier of the run. @param run  its shared_barriers
  void require_same(const auto& run) const {
    if (!announced_) return;
    votes_.require_same();
    if (run.has_lost_a_rank()) throw adasum::detail::ranks_differ();
  }
  /// Having come through that, or having failed before.
  void pass() {
    if (std::exchange(announced_, false)) votes_.pass();
  }
  void fail() {
    if (std::exchange(announced_, false)) votes_.fail();
  }
  /// Having left that barrier. @return whether the run may begin again: another rank has only waited for all votes
  bool go_back() {
    announced_ = false;
    return wait_for_all();
  }

 private:
  /// @return whether all ranks mean the same
  bool wait_for_all() {
    try {
      unsigned place = 80;
      do {
        reach_(place++);
        while (!votes_.arrived(one_.blocking)) {
        }
      } while (votes_.next());
      return votes_.all().is_good();
    } catch (const communication_error&) {
      return false;
    }
  }
  void be_another() {
    if (!one_.differs.in_full) try {
        for (;;) {
          reach_(70);
          votes_.require_same();
          in_loop();
        }
      } catch (const adasum::detail::ranks_differ&) {
      } catch (const communication_error&) {
        votes_.fail();
        return;
      }
    require(!wait_for_all(), "all ranks agree");
  }

  const scenario& one_;
  std::size_t self_;
  std::function<void(unsigned)> reach_;
  adasum::detail::votes_in_memory<window_of_votes> votes_;
  bool announced_ = false;  // what it is about to do, and it has not come through the first barrier
};

}  // namespace adasum::test::model
