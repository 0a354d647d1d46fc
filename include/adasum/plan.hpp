// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/agreement.hpp"
#include "collective/staged_reduction.hpp"
#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "rules/adasum.hpp"
#include "schedule/automatic.hpp"

namespace adasum {

/// A reduction that is set up once and run many times: partners, buffers and the report are made by the constructor, and
/// running allocates nothing. Made by plan_allreduce. All ranks run their plans in the same order; one plan runs at a time.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, schedule Schedule>
class allreduce_plan {
  static_assert(schedule_for<Schedule, Rule>,
                "this schedule combines gradients pair by pair, and the rule is not pairwise: use schedules::gram or "
                "schedules::automatic");

 public:
  /// Not collective: sends nothing. @throws bad_input if the schedule cannot be built
  template <bool Checked>
  allreduce_plan(Space space, Comm comm, segments_view segments, Rule rule, Schedule order,
                 const basic_options<Checked>& choices)
      : space_(space),
        comm_(comm),
        offsets_(segments.offsets().begin(), segments.offsets().end()),
        check_agreement_(choices.check_agreement),
        measure_(needs_gram<Rule> || choices.measure == measuring::always),
        reduction_(std::move(space), comm, std::move(rule), this->segments(),
                   order.stages(comm.rank(), comm.size(), what()), name_of(order, comm.size(), what()), measure_) {}

  /// Reduces the gradient in place, on all ranks together; returns when the result is there. Inf or NaN in a segment of
  /// any rank's gradient makes that whole segment NaN on all ranks (where the rule is measured).
  ///
  /// @return  the same object at each run, overwritten by the next
  /// @throws bad_input            a gradient of another length than the plan's; the other ranks get a communication_error
  /// @throws agreement_error      with options.check_agreement: the same on all ranks, nothing has changed
  /// @throws communication_error  a rank failed, or the message layer did; the gradient is then unspecified
  template <mutable_gradient Gradient>
  const report& operator()(Gradient&& gradient) {
    static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
    const auto elements = detail::span_of(gradient);
    std::string problem;
    if (elements.size() != length())
      problem = "adasum::allreduce_plan: the gradient has " + std::to_string(elements.size()) +
                " elements, the plan is for " + std::to_string(length());
    else if (elements.data() == nullptr && !elements.empty())
      problem = "adasum::allreduce_plan: the gradient is a null pointer with " + std::to_string(elements.size()) + " elements";
    return run(elements, problem);
  }

  /// Reduces buffer() in place.
  const report& operator()() { return run(buffer(), {}); }

  /// Gradient memory that the plan owns: length() elements, uninitialised. Valid as long as the plan.
  std::span<T> buffer() {
    if (!buffer_) buffer_ = space_.template allocate<T>(length());
    return {buffer_->data(), length()};
  }

  std::size_t length() const { return offsets_.back(); }
  segments_view segments() const { return segments_view{offsets_}; }
  const Space& space() const { return space_; }
  /// The rule in use, with its state if it has any.
  Rule& current_rule() { return reduction_.current_rule(); }
  const report& last_report() const { return reduction_.last_report(); }

  /// For callers that found something wrong with this rank's input: as if operator() had found it.
  [[noreturn]] void refuse(const std::string& problem) {
    run({}, problem);
    throw bad_input(problem);
  }

 private:
  using buffer_type = decltype(std::declval<const Space&>().template allocate<T>(0));

  problem what() const { return {length(), sizeof(T), segments().size(), pairwise_rule<Rule>}; }

  static std::string_view name_of(const Schedule& order, int size, const problem& what) {
    if constexpr (requires { order.chosen_name(size, what); })
      return order.chosen_name(size, what);
    else
      return Schedule::name;
  }

  const report& run(std::span<T> elements, const std::string& problem) {
    if (comm_.size() > 1 && check_agreement_) {
      const auto all = detail::gather_from_all(intention(elements, problem), comm_.rank(), comm_.size(),
                                               [&](auto out, auto in) { comm_.exchange(space_, out, in); });
      detail::require_agreement(all);
    } else if (!problem.empty()) {
      if (comm_.size() > 1) reduction_.withdraw_from_start();
      throw bad_input(problem);
    }
    return reduction_.run(elements.data());
  }

  detail::intention intention(std::span<T> elements, const std::string& problem) const {
    detail::intention mine;
    mine.length = elements.size();
    mine.set_segments(segments());
    mine.set(mine.scalar, to_string(format_of<T>));
    mine.set(mine.rule, Rule::name);
    mine.set(mine.schedule, Schedule::name);
    mine.set(mine.options, measure_ ? "measured" : "not measured");
    std::string space(Space::name);
    if constexpr (requires { space_.arithmetic(); }) space += " " + std::string(space_.arithmetic());
    mine.set(mine.space, space);
    mine.set(mine.problem, problem);
    return mine;
  }

  Space space_;
  Comm comm_;
  std::vector<std::size_t> offsets_;
  bool check_agreement_;
  bool measure_;
  std::optional<buffer_type> buffer_;
  detail::staged_reduction<T, Space, Comm, Rule> reduction_;
};

/// A plan for gradients of T that are cut into these segments. Every rank makes one with the same arguments.
/// @throws bad_input if the boundaries of the segments do not begin at 0 or decrease
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule = rules::adasum,
          schedule Schedule = schedules::automatic, bool Checked = options::checked_by_default>
auto plan_allreduce(const Space& space, const Comm& comm, segments_view segments, const Rule& rule = {},
                    const Schedule& order = {}, const basic_options<Checked>& choices = {}) {
  detail::require_segments_match(segments, segments.all().end, "adasum::plan_allreduce");
  return allreduce_plan<T, Space, Comm, Rule, Schedule>(space, comm, segments, rule, order, choices);
}

/// The same for Adasum by the given schedule.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, schedule Schedule,
          bool Checked = options::checked_by_default>
auto plan_allreduce(const Space& space, const Comm& comm, segments_view segments, const Schedule& order,
                    const basic_options<Checked>& choices = {}) {
  return plan_allreduce<T>(space, comm, segments, rules::adasum{}, order, choices);
}

}  // namespace adasum
