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
  measure,    ///< the Gram matrix of what is here, added over the ranks
  mix,        ///< weigh and mix
  settle,     ///< a rank that has got to the root: its part of the result, as the others will see it
  await,      ///< a rank that waits for the result, in place: until it has been written
  receive,    ///< the same, by message
  leave,      ///< in place: write the result to every member, wait until all have
  gather,     ///< by message: the other survivors' parts of the result
  finish,     ///< the report
};

struct step {
  step_kind kind;
  std::size_t level;  ///< the stage that it belongs to
};

/// Down the stages as far as this rank survives them, and back.
/// @param take_part  whether the ranks tell each other who takes part
/// @param in_place   in_place(stage): whether the members work in memory that they share
template <class InPlace>
std::vector<step> steps_of(const std::vector<stage>& stages, bool take_part, InPlace&& in_place) {
  std::vector<step> steps;
  steps.reserve(7 * stages.size() + 5);
  const auto add = [&](step_kind kind, std::size_t level) { steps.push_back({kind, level}); };
  const auto add_in_place = [&](step_kind kind, std::size_t level) {
    if (in_place(stages[level])) add(kind, level);
  };
  add(step_kind::agree, 0);
  add(step_kind::begin, 0);
  if (take_part) add(step_kind::take_part, 0);
  std::size_t done = 0;
  for (; done < stages.size(); ++done) {
    add_in_place(step_kind::enter, done);
    add(step_kind::meet, done);
    if (!stages[done].survives()) break;
    add(step_kind::measure, done);
    add(step_kind::mix, done);
  }
  if (done < stages.size()) {
    add_in_place(step_kind::await, done);
    add(step_kind::receive, done);
  } else if (std::ranges::any_of(stages,
                                 [&](const stage& level) { return level.members.size() > 1 && !in_place(level); })) {
    add(step_kind::settle, done - 1);
  }
  while (done-- > 0) {
    add_in_place(step_kind::leave, done);
    add(step_kind::gather, done);
  }
  add(step_kind::finish, 0);
  return steps;
}

}  // namespace adasum::detail
