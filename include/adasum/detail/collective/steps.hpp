// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
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
  gather,        ///< or the norms and row sums of each gradient, to all ranks; weigh
  weigh,         ///< pieces that are weighed together (planned_stage)
  combine,       ///< weigh → mix → recombine: this rank's part of the combination
  round_result,  ///< a rank that has got to the root rounds its part of the result as messages do
  deliver,       ///< the result, to all members of a stage
  hand_over,     ///< or to every rank its part (schedule/parts_of_result.hpp)
  gather_norms,  ///< of the parts of the result, to all ranks, where inner products do not tell them
  finish,        ///< the report
};

/// What a rank was doing when it has waited in vain.
constexpr const char* describe(step_kind kind) {
  switch (kind) {
    case step_kind::agree: return "comparing what the ranks are about to do";
    case step_kind::exclude: return "telling whose gradient is finite";
    case step_kind::bring: return "bringing gradients together";
    case step_kind::sum: return "adding inner products";
    case step_kind::gather: return "gathering norms and row sums";
    case step_kind::weigh:
    case step_kind::combine: return "combining gradients that inner products cannot decide";
    case step_kind::deliver: return "delivering a result";
    case step_kind::hand_over: return "handing over parts of the result";
    case step_kind::gather_norms: return "gathering norms of the result";
    case step_kind::begin:
    case step_kind::measure:
    case step_kind::round_result:
    case step_kind::finish: break;
  }
  return "a reduction";
}

struct step {
  step_kind kind;
  std::size_t stage;              ///< the stage that it belongs to
  std::size_t pieces_needed = 0;  ///< how many pieces of the gradient must be there before it begins
};

/// Down the stages as far as this rank survives them. What would have nothing to do is left out, here and below: reductions
/// of short vectors are a matter of nanoseconds.
/// @param stages  bound stages
/// @param add     add(step_kind, stage)
template <class Stage, class Add>
void add_steps_down(std::span<const Stage> stages, const Add& add) {
  for (std::size_t at = 0; at < stages.size(); ++at) {
    const auto& stage = stages[at];
    if (stage.members.size() > 1) add(step_kind::bring, at);
    if (!stage.survives()) return;
    add(step_kind::measure, at);
    if (stage.sum_over.size() > 1) add(step_kind::sum, at);
    if (!stage.weighed_together) add(step_kind::combine, at);
  }
}

/// And back. @param rounds  whether the result is rounded
template <class Stage, class Add>
void add_steps_back(std::span<const Stage> stages, bool rounds, const Add& add) {
  std::size_t done = 0;
  while (done < stages.size() && stages[done].survives()) ++done;
  if (done < stages.size()) {
    add(step_kind::deliver, done);
  } else {
    if (stages.back().weighed_together) add(step_kind::combine, done - 1);
    if (rounds) add(step_kind::round_result, done - 1);
  }
  while (done-- > 0)
    if (!stages[done].to_deliver.empty()) add(step_kind::deliver, done);
}

/// visit(number of its first stage, its stages) for each piece of the gradient; all of it is one, if it is not in pieces.
template <class Stage, class Visitor>
void for_each_piece(std::span<const Stage> stages, const Visitor& visit) {
  for (std::size_t first = 0, last = 0; first < stages.size(); first = last) {
    while (last < stages.size() && stages[last].pieces_needed == stages[first].pieces_needed) ++last;
    visit(first, stages.subspan(first, last - first));
  }
}

/// What follows in place of that where every rank gets a part of the result only. In memory that ranks share, each waits
/// until nobody works on its gradient any more, before it gives that to messages.
/// @param exchanges  whether this rank sends or receives parts
template <class Stage, class Add>
void add_steps_to_owners(std::span<const Stage> stages, bool rounds, bool exchanges, const Add& add) {
  std::size_t done = 0;
  while (done < stages.size() && stages[done].survives()) ++done;
  if (done == stages.size() && rounds) add(step_kind::round_result, done - 1);
  const auto met = stages.first(std::min(done + 1, stages.size()));
  for (auto stage = met.rbegin(); stage != met.rend(); ++stage)
    if (stage->in_place) add(step_kind::deliver, static_cast<std::size_t>(met.rend() - stage) - 1);
  if (exchanges) add(step_kind::hand_over, 0);
}

/// The steps of a reduction that measures and combines in each stage.
template <class Stage, class Measured>
class step_list {
 public:
  /// @param stages    bound stages
  /// @param measured  measured(stage): whether its Gram matrix is
  step_list(std::span<const Stage> stages, const Measured& measured) : stages_(stages), measured_(measured) {
    steps_.reserve(5 * stages.size() + 6);
  }

  /// Down the stages and back: piece by piece, if the gradient is in pieces.
  /// @param excludes   whether the ranks tell each other who takes part
  /// @param beforehand whether they must do so before any stage, rather than before what is weighed together
  /// @param rounds     whether the result is rounded
  /// @param parts      where every rank gets a part of the result only: whether this one sends or receives parts
  std::vector<step> make(bool excludes, bool beforehand, bool rounds, std::optional<bool> parts) && {
    const auto all = stages_.back().pieces_needed;
    add(step_kind::agree);
    add(step_kind::begin);
    if (excludes && (beforehand || all == 0)) add(step_kind::exclude, 0, all);
    for_each_piece(stages_, [&](std::size_t first, std::span<const Stage> piece) {
      add_steps_down(piece, [&](step_kind kind, std::size_t at) {
        if (kind != step_kind::sum || measured_(piece[at])) add(kind, first + at, piece[at].pieces_needed);
      });
    });
    if (excludes && !beforehand && all > 0) add(step_kind::exclude, 0, all);
    if (stages_.back().survives() && stages_.back().weighed_together) add(step_kind::weigh, stages_.size() - 1);
    for_each_piece(stages_, [&](std::size_t first, std::span<const Stage> piece) {
      const auto add_in_piece = [&](step_kind kind, std::size_t at) { add(kind, first + at); };
      if (parts)
        add_steps_to_owners(piece, rounds, *parts, add_in_piece);
      else
        add_steps_back(piece, rounds, add_in_piece);
    });
    add(step_kind::finish);
    return std::move(steps_);
  }

 private:
  void add(step_kind kind, std::size_t stage = 0, std::size_t pieces = 0) { steps_.push_back({kind, stage, pieces}); }

  std::span<const Stage> stages_;
  const Measured& measured_;
  std::vector<step> steps_;
};

}  // namespace adasum::detail
