// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/stage.hpp"

/// A reduction as a list of steps, cut where a rank has to wait for others. What can be interrupted between steps, and
/// taken up again, needs no thread of its own.
namespace adasum::detail {

enum class step_kind {
  agree,      ///< every rank's intention to all ranks, and compare
  begin,      ///< what was known of the last run is forgotten
  take_part,  ///< which gradients are finite, to all ranks
  enter,      ///< in place: wait until every member's gradient is there
  meet,       ///< by message: get the other members' parts
  combine,    ///< measure what is here, add that over the ranks, weigh and mix
  settle,     ///< a rank that has got to the root rounds its part of the result as messages do
  await,      ///< a rank that waits for the result, in place: until it has been written
  receive,    ///< the same, by message
  leave,      ///< in place: write the result to every member, wait until all have; not where each has computed it
  gather,     ///< by message: the other survivors' parts of the result
  finish,     ///< the report
};

/// What a step waits for.
enum class waiting {
  nothing,           ///< it is done
  messages,          ///< of the exchange that it has started
  barrier,           ///< the other ranks that share memory
  to_be_left_alone,  ///< those of them that still use this rank's memory, after a failure
};

struct step {
  step_kind kind;
  std::size_t level;  ///< the stage that it belongs to
};

/// Down the stages as far as this rank survives them, and back. What would have nothing to do is left out: reductions
/// of short vectors are a matter of nanoseconds.
/// @param take_part  whether the ranks tell each other who takes part
/// @param rounds     whether messages are rounded
/// @param in_place   in_place(stage): whether the members work in memory that they share
template <class InPlace>
std::vector<step> steps_of(const std::vector<stage>& stages, bool take_part, bool rounds, InPlace&& in_place) {
  std::vector<step> steps;
  steps.reserve(5 * stages.size() + 6);
  const auto add = [&](step_kind kind, std::size_t level, bool needed = true) {
    if (needed) steps.push_back({kind, level});
  };
  const auto by_message = [&](const stage& level) { return level.members.size() > 1 && !in_place(level); };
  add(step_kind::agree, 0);
  add(step_kind::begin, 0);
  add(step_kind::take_part, 0, take_part);
  std::size_t done = 0;
  for (; done < stages.size(); ++done) {
    add(step_kind::enter, done, in_place(stages[done]));
    add(step_kind::meet, done, stages[done].members.size() > 1);
    if (!stages[done].survives()) break;
    add(step_kind::combine, done);
  }
  if (done < stages.size()) {
    add(step_kind::await, done, in_place(stages[done]));
    add(step_kind::receive, done);
  } else {
    add(step_kind::settle, done - 1, rounds && std::ranges::any_of(stages, by_message));
  }
  while (done-- > 0) {
    const auto& level = stages[done];
    const bool some_wait = level.survivors < level.members.size();
    add(step_kind::leave, done, in_place(level) && !level.replicated());
    add(step_kind::gather, done, some_wait || (by_message(level) && !level.replicated()));
  }
  add(step_kind::finish, 0);
  return steps;
}

}  // namespace adasum::detail
