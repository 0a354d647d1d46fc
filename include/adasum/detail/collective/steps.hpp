// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// A reduction as a list of steps, cut where a rank has to wait for others. What can be interrupted between steps, and
/// taken up again, needs no thread of its own.
namespace adasum::detail {

enum class step_kind {
  agree,         ///< what every rank is about to do, to all ranks, and compare
  begin,         ///< what was known of the last run is forgotten
  exclude,       ///< which gradients are finite, to all ranks
  bring,         ///< every member's part gets to where this rank can read it
  measure,       ///< the Gram matrices of what is here
  sum,           ///< … added over the ranks that hold the rest
  combine,       ///< weigh → mix → recombine: this rank's part of the combination
  round_result,  ///< a rank that has got to the root rounds its part of the result as messages do
  deliver,       ///< the result, to all members of a stage
  finish,        ///< the report
};

struct step {
  step_kind kind;
  std::size_t stage;  ///< the stage that it belongs to
};

/// Down the stages as far as this rank survives them, and back. What would have nothing to do is left out: reductions
/// of short vectors are a matter of nanoseconds.
/// @param excludes  whether the ranks tell each other who takes part
/// @param rounds    whether the result is rounded
/// @param stages    bound stages
/// @param measured  measured(stage): whether its Gram matrix is
template <class Stage, class Measured>
std::vector<step> steps_of(std::span<const Stage> stages, bool excludes, bool rounds, const Measured& measured) {
  std::vector<step> steps;
  steps.reserve(5 * stages.size() + 5);
  const auto add = [&](step_kind kind, std::size_t stage, bool needed = true) {
    if (needed) steps.push_back({kind, stage});
  };
  add(step_kind::agree, 0);
  add(step_kind::begin, 0);
  add(step_kind::exclude, 0, excludes);
  std::size_t done = 0;
  for (; done < stages.size(); ++done) {
    const auto& stage = stages[done];
    add(step_kind::bring, done, stage.members.size() > 1);
    if (!stage.survives()) break;
    add(step_kind::measure, done);
    add(step_kind::sum, done, measured(stage) && stage.sum_over.size() > 1);
    add(step_kind::combine, done);
  }
  if (done < stages.size())
    add(step_kind::deliver, done);
  else
    add(step_kind::round_result, done - 1, rounds);
  while (done-- > 0) add(step_kind::deliver, done, !stages[done].to_deliver.empty());
  add(step_kind::finish, 0);
  return steps;
}

}  // namespace adasum::detail
