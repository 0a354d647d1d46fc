// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "../references/function_ref.hpp"
#include "transport/transport.hpp"

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
  hand_over,     ///< or to every rank its part (schedule/parts_of_result.hpp)
  finish,        ///< the report
};

/// What a rank was doing when it has waited in vain.
constexpr const char* describe(step_kind kind) {
  switch (kind) {
    case step_kind::agree: return "comparing what the ranks are about to do";
    case step_kind::exclude: return "telling whose gradient is finite";
    case step_kind::bring: return "bringing gradients together";
    case step_kind::sum: return "adding inner products";
    case step_kind::combine: return "combining gradients that inner products cannot decide";
    case step_kind::deliver: return "delivering a result";
    case step_kind::hand_over: return "handing over parts of the result";
    case step_kind::begin:
    case step_kind::measure:
    case step_kind::round_result:
    case step_kind::finish: break;
  }
  return "a reduction";
}

struct step {
  step_kind kind;
  std::size_t stage = 0;  ///< the stage that it belongs to
};

/// What decides about the steps of a reduction, besides its stages.
struct step_choices {
  bool excludes;  ///< whether the ranks tell each other who takes part
  bool rounds;    ///< whether the result is rounded
  std::optional<bool>
      parts;  ///< where every rank gets a part of the result only: whether this one sends or receives parts
};

/// The steps of a reduction: down the stages as far as this rank survives them, and back. What would have nothing to do
/// is left out: reductions of short vectors are a matter of nanoseconds.
/// @param is_measured  whether a stage's Gram matrix is
inline std::vector<step> steps_of(std::span<const bound_stage> stages, const step_choices& choices,
                                  function_ref<bool(const bound_stage&)> is_measured) {
  std::vector<step> steps{{step_kind::agree}, {step_kind::begin}};
  steps.reserve(5 * stages.size() + 6);
  if (choices.excludes) steps.push_back({step_kind::exclude});
  std::size_t done = 0;
  for (; done < stages.size(); ++done) {
    const auto& stage = stages[done];
    if (stage.members.size() > 1) steps.push_back({step_kind::bring, done});
    if (!stage.survives()) break;
    steps.push_back({step_kind::measure, done});
    if (stage.sum_over.size() > 1 && is_measured(stage)) steps.push_back({step_kind::sum, done});
    steps.push_back({step_kind::combine, done});
  }
  const bool has_result = done == stages.size();
  if (has_result && choices.rounds) steps.push_back({step_kind::round_result, done - 1});
  if (!choices.parts) {
    if (!has_result) steps.push_back({step_kind::deliver, done});
    while (done-- > 0)
      if (!stages[done].to_deliver.empty()) steps.push_back({step_kind::deliver, done});
  } else {
    // In memory that ranks share, each waits until nobody works on its gradient any more, before it gives that to messages.
    for (auto met = std::min(done + 1, stages.size()); met-- > 0;)
      if (stages[met].in_place) steps.push_back({step_kind::deliver, met});
    if (*choices.parts) steps.push_back({step_kind::hand_over});
  }
  steps.push_back({step_kind::finish});
  return steps;
}

}  // namespace adasum::detail
