// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "allreduce.hpp"
#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "detail/arguments.hpp"
#include "detail/engine/collective_setup.hpp"
#include "detail/engine/enqueued_reduction.hpp"
#include "detail/engine/plan_inputs.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// A reduction on a stream that is set up once, by plan_enqueued_allreduce, and enqueued many times. A run costs the host
/// some launches; it waits for nothing, and from the second run on it allocates nothing. Differences from allreduce_plan:
///
///   * there is no report, for the host never learns what was computed;
///   * only rules that are applied along the tree can be used; they are copied to the device, and inner products are
///     always measured (exec/cuda/weigh.hpp says what differs in extreme cases). Inf or NaN in a segment makes that
///     segment NaN on all ranks; there is no other policy;
///   * a rank that throws has enqueued nothing, and the other ranks' streams wait for it, as with any NCCL call. With
///     options::check_agreement, all ranks compare what they are about to do when the plan is made and before each run,
///     and for that the host does wait: if one throws, all do, and none has enqueued anything.
///
/// It must live until the work that it has enqueued is done, and longer than graphs that recorded it. All ranks enqueue
/// their plans in the same order.
template <scalar T, class Space, class Comm, tree_rule Rule, schedule Schedule>
  requires stream_ordered_space<Space, T, Rule> && stream_ordered_communicator<Comm, Space>
class enqueued_allreduce_plan {
  static_assert(!detail::works_in_shared_memory_only<Schedule>,
                "schedules::shared_memory works on memory that ranks share, not on messages");

 public:
  /// @cond internal
  /// What plan_enqueued_allreduce makes.
  enqueued_allreduce_plan(const char* call, const Space& space, const Comm& comm, segments_view segments,
                          const Rule& rule, const Schedule& schedule, const basic_options<true>& choices,
                          detail::plan_purpose purpose, detail::collective_setup& together)
      : space_(space),
        comm_(comm),
        rule_(rule),
        schedule_(schedule),
        inputs_(arguments(call, segments, choices, purpose)),
        engine_(space_, comm_, rule_, detail::copy_of_inner_rule(schedule_), inputs_.segments(), inputs_.stages()) {
    inputs_.prepare_agreement("on a stream");
    if (inputs_.compares()) together.meet(inputs_.signature(), inputs_.segments(), inputs_.memory());
  }
  /// @endcond
  enqueued_allreduce_plan(enqueued_allreduce_plan&&) = delete;  // what it holds refers to it

  /// Enqueues the reduction of the gradient, in place, on all ranks together.
  /// @throws bad_input           the gradient's length is not that of the plan, or the device cannot reach the gradient; or
  ///                             another plan is in flight on this communicator
  /// @throws agreement_error      with options::check_agreement: the same on all ranks, nothing has changed
  /// @throws communication_error  something could not be sent
  /// @throws cuda_error  something could not be enqueued
  template <class Gradient>
  void operator()(Gradient&& gradient) {
    if constexpr (detail::is_output_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
      constexpr auto name = "adasum::enqueued_allreduce_plan";
      detail::require_no_reduction(inputs_.comm(), name, "::operator()");
      const auto elements = detail::span_of(gradient);
      const auto problem =
          inputs_.problem_with(reinterpret_cast<const std::byte*>(elements.data()), elements.size(), name);
      if (inputs_.compares_in_runs()) inputs_.agree(inputs_.signature_of_run(elements.size(), problem, {}));
      if (!problem.empty()) throw bad_input(problem);
      engine_.enqueue(elements.data());
    }
  }

  /// How many elements a gradient has.
  std::size_t length() const { return inputs_.length(); }
  /// The segments into which it is cut.
  segments_view segments() const { return inputs_.segments(); }
  /// The execution space, a copy of the one that was given.
  const Space& space() const { return space_; }

 private:
  /// Of the copies that this object holds.
  detail::plan_arguments arguments(const char* call, segments_view segments, const basic_options<true>& choices,
                                   detail::plan_purpose purpose) const {
    if (choices.nonfinite != nonfinite_policy::propagate || choices.wire != wire_format::same)
      throw bad_input({call, ": options::nonfinite and options::wire are for plan_allreduce, whose host waits"});
    auto given = detail::arguments_of<T>(call, space_, comm_, rule_, schedule_, segments, choices);
    given.purpose = purpose;
    return given;
  }

  Space space_;
  Comm comm_;
  Rule rule_;
  Schedule schedule_;
  detail::plan_inputs inputs_;
  detail::enqueued_reduction<T, Space, Comm, Rule,
                             decltype(detail::copy_of_inner_rule(std::declval<const Schedule&>()))>
      engine_;
};

namespace detail {

/// What set_up(together) returns. Only where the ranks compare do they tell each other of a failure: otherwise the host
/// waits for nobody.
/// @throws bad_input  a plan is in flight on this communicator; nothing has been sent
template <class Space, class Comm, class SetUp>
auto set_up_enqueued(const char* call, const Space& space, const Comm& comm, bool compares, SetUp&& set_up) {
  collective_setup together(call, ref_to_communicator(space, comm), compares);
  if (compares) return together.run(set_up);
  return set_up(together);
}

/// A plan for the call that is named in messages, with the arguments that follow its segments.
template <scalar T, class Space, class Comm, class... As>
auto make_enqueued_plan(const char* call, const Space& space, const Comm& comm, segments_view segments,
                        plan_purpose purpose, const As&... as) {
  const auto choices = options_of_plan(options_among(call, as...));
  return set_up_enqueued(call, space, comm, choices.check_agreement, [&](collective_setup& together) {
    return enqueued_allreduce_plan<T, Space, Comm, rule_among<const As...>, schedule_among<const As...>>(
        call, space, comm, segments, argument_or<argument::rule>(usual_rule, as...),
        argument_or<argument::schedule>(usual_schedule, as...), choices, purpose, together);
  });
}

}  // namespace detail

/// A plan that is enqueued, for gradients of T that are cut into these segments, or of this length. Every rank makes one with
/// the same arguments; these may follow the segments, in any order and each at most once: a rule, a schedule, options.
/// With options::check_agreement it is collective and waits for all ranks, as plan_allreduce does: if it throws on one
/// rank, it throws on all of them. Without that option, it waits for nobody.
/// @return an enqueued_allreduce_plan, which cannot be moved
/// @throws bad_input  boundaries of the segments that do not begin at 0 or decrease; the schedule cannot be built (with
///                    options::check_agreement an agreement_error); an option that needs the host (nonfinite, wire); a
///                    plan is in flight on this communicator
/// @throws agreement_error  with options::check_agreement: the ranks are about to make different plans, or one of them
///                          got bad input or failed otherwise
template <scalar T, class Space, class Comm, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options>
auto plan_enqueued_allreduce(const Space& space, const Comm& comm, const detail::segments_or_length& segments,
                             A&& a = {}, B&& b = {}, C&& c = {}) {
  if constexpr (detail::are_arguments<detail::taken_arguments{.segments = false}, A, B, C>())
    if constexpr (detail::is_stream_ordered_argument<Space, T>())
      if constexpr (detail::is_stream_ordered_communicator_argument<Comm, Space>()) {
        return segments.visit([&](segments_view cut) {
          return detail::make_enqueued_plan<T>("adasum::plan_enqueued_allreduce", space, comm, cut,
                                               detail::plan_purpose::of_user, a, b, c);
        });
      }
}

/// Enqueues the adaptive sum of all ranks' gradients, in place. The space and the communicator must both work in the order of
/// a stream (cuda_space with nccl_communicator). The host waits for nothing and gets no report. The call makes a plan
/// (plan_enqueued_allreduce), enqueues it and discards it. Keep the space between calls, since it holds memory that would
/// otherwise be allocated each time; if you keep a plan as well, nothing is allocated at all. Segments, a schedule and
/// options may follow. It throws what plan_enqueued_allreduce and the run of its plan throw.
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options>
void enqueue_adasum_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {},
                              C&& c = {}) {
  if constexpr (detail::is_collective_call<detail::taken_arguments{.rule = false}, Space, Comm, Gradient, A, B, C>())
    if constexpr (detail::is_stream_ordered_argument<Space, element_t<Gradient>>() &&
                  detail::is_stream_ordered_communicator_argument<Comm, Space>()) {
      constexpr auto call = "adasum::enqueue_adasum_allreduce";
      const auto elements = detail::span_of(gradient);
      const std::array<std::size_t, 2> whole{0, elements.size()};
      const auto cut = detail::segments_or(segments_view{whole}, a, b, c);
      const bool compares = detail::options_among(call, a, b, c).check_agreement;
      detail::set_up_enqueued(call, space, comm, compares, [&](detail::collective_setup& together) {
        detail::refuse_bad_gradient(together, call, detail::ref_to_space<element_t<Gradient>>(space),
                                    reinterpret_cast<const std::byte*>(elements.data()), elements.size(), cut);
      });
      detail::make_enqueued_plan<element_t<Gradient>>(call, space, comm, cut, detail::plan_purpose::one_call, a, b,
                                                      c)(elements);
    }
}

}  // namespace adasum
