// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collective/agreement.hpp"
#include "collective/stream_reduction.hpp"
#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/message.hpp"
#include "core/options.hpp"
#include "plan.hpp"
#include "rules/adasum.hpp"
#include "schedule/automatic.hpp"

namespace adasum {

/// A reduction on a stream that is set up once and enqueued many times: running it costs the host some launches, waits
/// for nothing, and allocates nothing from the second time on. Made by plan_allreduce_async; as allreduce_plan, but
///
///   * there is no report, for the host never learns what was computed;
///   * rules along the tree only, copied to the device, and always measured; what weighing there means in extreme
///     cases: exec/cuda/weigh.hpp; Inf or NaN in a segment makes that segment NaN on all ranks, and there is no other
///     policy;
///   * a rank that throws has enqueued nothing, and the other ranks' streams wait for it, as with any NCCL call; with
///     options::check_agreement all ranks compare first what they are about to do, for which the host does wait.
///
/// It must live until what it has enqueued is done, and longer than graphs that recorded it. All ranks enqueue their
/// plans in the same order.
template <scalar T, class Space, class Comm, tree_rule Rule, schedule Schedule>
  requires stream_ordered_space<Space, T, Rule> && stream_ordered_communicator<Comm, Space>
class stream_allreduce_plan {
  static_assert(!detail::needs_shared_memory<Schedule>,
                "schedules::direct works on memory that ranks share, not on messages");

 public:
  /// Waits for nothing.
  /// @throws bad_input  the schedule cannot be built (with options::check_agreement: thrown by the first run, as an
  ///                    agreement_error on all ranks); an option that needs the host (nonfinite, wire)
  template <bool Checked>
  stream_allreduce_plan(Space space, Comm comm, segments_view segments, Rule rule, Schedule order,
                        const basic_options<Checked>& choices)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        offsets_(segments.offsets().begin(), segments.offsets().end()),
        check_agreement_(choices.check_agreement && comm_.size() > 1) {
    if (choices.nonfinite != nonfinite_policy::propagate || choices.wire != wire_format::same)
      throw bad_input(
          "adasum::plan_allreduce_async: options::nonfinite and options::wire are for plan_allreduce, whose host "
          "waits");
    const problem what{offsets_.back(), sizeof(T), offsets_.size() - 1, true};
    reduction_.emplace(space_, comm_, std::move(rule), detail::inner_rule_of(order), segments_view{offsets_},
                       detail::stages_or_problem(order, comm_.rank(), comm_.size(), what, schedules::gram{},
                                                 check_agreement_ ? &schedule_problem_ : nullptr));
    if (!check_agreement_) return;
    intention_ =
        detail::intention_of<T, Rule, inner_rule, Schedule>(space_, this->segments(), "on a stream", describe(choices));
    intention_.length = length();
    if (schedule_problem_.empty()) intention_.add_stages_of(order, comm_.size(), what);
    intentions_.resize(static_cast<std::size_t>(comm_.size()));
  }
  stream_allreduce_plan(stream_allreduce_plan&&) = delete;  // the reduction looks at offsets_

  /// Enqueues the reduction of the gradient, in place, on all ranks together.
  /// @throws bad_input           a gradient of another length than the plan's, or that the device cannot reach
  /// @throws agreement_error     with options::check_agreement: the same on all ranks, nothing has changed
  /// @throws communication_error, cuda_error  what could not be enqueued
  template <mutable_gradient Gradient>
  void operator()(Gradient&& gradient) {
    run(gradient, {});
  }

  /// The same for callers that may have found something wrong with this rank's input: as if operator() had found it.
  template <mutable_gradient Gradient>
  void run(Gradient&& gradient, std::string problem) {
    static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
    const auto elements = detail::span_of(gradient);
    if (problem.empty()) problem = schedule_problem_;
    if (problem.empty())
      problem = detail::problem_with_gradient(space_, std::span<const T>(elements), length(),
                                              "adasum::stream_allreduce_plan");
    if (check_agreement_) {
      auto mine = intention_;
      if (!problem.empty()) mine.set(mine.problem, problem);
      detail::agree(space_, comm_, mine, intentions_);
    }
    if (!problem.empty()) throw bad_input(problem);
    reduction_->enqueue(elements.data());
  }

  std::size_t length() const { return offsets_.back(); }
  segments_view segments() const { return segments_view{offsets_}; }
  const Space& space() const { return space_; }

 private:
  using inner_rule = decltype(detail::inner_rule_of(std::declval<const Schedule&>()));

  Space space_;
  Comm comm_;
  std::vector<std::size_t> offsets_;
  bool check_agreement_;
  std::string schedule_problem_;
  detail::intention intention_;
  std::vector<detail::intention> intentions_;  // of all ranks
  std::optional<detail::stream_reduction<T, Space, Comm, Rule, inner_rule>> reduction_;
};

/// A plan that is enqueued, for gradients of T that are cut into these segments. Every rank makes one with the same
/// arguments.
/// @throws bad_input if the boundaries of the segments do not begin at 0 or decrease
template <scalar T, class Space, class Comm, tree_rule Rule = rules::adasum, schedule Schedule = schedules::automatic,
          bool Checked = options::checked_by_default>
  requires stream_ordered_space<Space, T, Rule> && stream_ordered_communicator<Comm, Space>
auto plan_allreduce_async(const Space& space, const Comm& comm, segments_view segments, const Rule& rule = {},
                          const Schedule& order = {}, const basic_options<Checked>& choices = {}) {
  detail::require_boundaries(segments, "adasum::plan_allreduce_async");
  return stream_allreduce_plan<T, Space, Comm, Rule, Schedule>(space, comm, segments, rule, order, choices);
}

}  // namespace adasum
