// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/shared_votes.hpp>

#include "ranks.hpp"
#include "scenario.hpp"
#include "window.hpp"

/// What a rank does where not all are about to do the same: see detail/engine/shared_votes.hpp.
namespace adasum::test::model {

using votes_of_ranks = adasum::detail::votes_in_memory<window_of_votes>;

/// Waits for all votes. @param reach  reach(place): see checkpoint. @return false: the run has failed
template <class Reach>
bool vote_in_full(votes_of_ranks& votes, const scenario& one, const Reach& reach) {
  try {
    unsigned place = 80;
    do {
      reach(place++);
      while (!votes.arrived(one.blocking)) {
      }
    } while (votes.next());
    require(!votes.all().is_good(), "all ranks agree");
  } catch (const communication_error&) {
  }
  return false;
}

/// A rank that means something else than the others.
template <class Reach>
bool be_another(votes_of_ranks& votes, const scenario& one, const Reach& reach) {
  if (!one.differs.in_full) try {
      for (;;) {
        reach(70);
        votes.require_same();
        in_loop();
      }
    } catch (const adasum::detail::ranks_differ&) {
    } catch (const communication_error&) {
      votes.fail();
      return false;
    }
  return vote_in_full(votes, one, reach);
}

}  // namespace adasum::test::model
