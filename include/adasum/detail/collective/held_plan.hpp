// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "../../core/concepts.hpp"
#include "../../core/options.hpp"
#include "../../core/report.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/function_ref.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "destination.hpp"
#include "joint_set_up.hpp"
#include "reduction.hpp"

/// From the arguments of a call to a plan, and a single call.
namespace adasum::detail {

/// A plan and, in a class that derives from this, what it refers to.
struct held_plan {
  virtual ~held_plan() = default;
  std::unique_ptr<reduction> engine;
};

/// Destroys a plan, if nothing uses its memory any more (plan::must_stay).
struct plan_deleter {
  void operator()(held_plan* held) const noexcept {
    if (held->engine) {
      held->engine->abandon();
      if (held->engine->must_stay()) return;
      held->engine.reset();
    }
    delete held;
  }
};
using held_plan_ptr = std::unique_ptr<held_plan, plan_deleter>;

/// What a plan refers to: copies of the call's arguments.
template <scalar T, class Space, class Comm, class Rule, class Schedule>
struct plan_of final : held_plan {
  plan_of(Space with_space, Comm among, Rule with_rule, Schedule in_order)
      : space(std::move(with_space)),
        comm(std::move(among)),
        rule(std::move(with_rule)),
        schedule(std::move(in_order)) {}

  Space space;
  Comm comm;
  Rule rule;
  Schedule schedule;
};

/// Whether a schedule says at compile time that it works in shared memory only; of others, the plan finds out.
template <class Schedule>
constexpr bool works_in_shared_memory_only = [] {
  if constexpr (requires {
                  typename std::integral_constant<shared_memory_use, Schedule::uses_shared_memory(2, schedule_input{})>;
                })
    return Schedule::uses_shared_memory(2, schedule_input{}) == shared_memory_use::required;
  else
    return false;
}();

template <scalar T, class Space, class Comm, class Rule, class Schedule>
plan_arguments arguments_of(const char* call, const Space& space, const Comm& comm, const Rule& rule,
                            const Schedule& schedule, segments_view segments, const basic_options<true>& choices) {
  static_assert(schedule_for<Schedule, Rule>,
                "this schedule combines gradients pair by pair, and the rule needs all inner products at once: use "
                "schedules::all_to_all, schedules::shared_memory or schedules::automatic");
  static_assert(
      shares_gradients<Comm, Space> || !works_in_shared_memory_only<Schedule>,
      "this schedule works in memory that the ranks share, and the communicator offers none that the execution space "
      "can work in");
  return {call, ref_to_space<T>(space), ref_to_communicator(space, comm), rule_ref(rule), schedule, segments, choices};
}

/// A plan for the call that is named in messages, as a part of a larger set-up.
/// @param to, mine  see plan_arguments
template <scalar T, class Space, class Comm, class Rule, class Schedule>
auto make_plan(joint_set_up& together, const char* call, const Space& space, const Comm& comm, segments_view segments,
               const Rule& rule, const Schedule& schedule, const basic_options<true>& choices, plan_purpose purpose,
               const destination& to = {}, const shard* mine = nullptr) {
  using type = plan_of<T, Space, Comm, Rule, Schedule>;
  std::unique_ptr<type, plan_deleter> made(new type(space, comm, rule, schedule));
  auto arguments = arguments_of<T>(call, made->space, made->comm, made->rule, made->schedule, segments, choices);
  arguments.purpose = purpose;
  arguments.to = to;
  arguments.mine = mine;
  made->engine = new_reduction(arguments, together);
  return made;
}

// ── single calls ──

/// Tells the other ranks of a gradient that cannot be reduced, and of segments that do not fit it, before the ranks act
/// on their segments: this rank's may differ from theirs. @throws what joint_set_up::refuse throws
void refuse_bad_gradient(joint_set_up& together, const char* call, const space_ref& space, const std::byte* elements,
                         std::size_t count, segments_view segments);

/// A single call.
struct single_call {
  const plan_arguments& given;
  std::byte* elements;
  std::size_t count;
  bool keeps_plan;  ///< where the communicator keeps plans, which then outlive the call
  /// make(together, purpose): the plan of given.
  function_ref<held_plan_ptr(joint_set_up&, plan_purpose)> make;
};

/// Runs it: by a plan that is kept with the communicator, or by one of its own.
/// @param made  receives the latter
report run(const single_call& call, held_plan_ptr& made);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <string>

#include "../../core/error.hpp"
#include "../../core/input_checks.hpp"
#include "../../core/kept_plans.hpp"

namespace adasum::detail {

ADASUM_INLINE void refuse_bad_gradient(joint_set_up& together, const char* call, const space_ref& space,
                                       const std::byte* elements, std::size_t count, segments_view segments) {
  std::string problem;
  try {
    require_segments_match(segments, count, call);
  } catch (const bad_input& wrong) {
    problem = wrong.what();
  }
  if (problem.empty()) problem = problem_with_gradient(space, elements, count, count, call);
  if (!problem.empty()) together.refuse(problem);
}

/// A single call that was made before, and its plan.
struct call_made_before final : kept_plans::call {
  explicit call_made_before(std::size_t bytes) : kept_plans::call(std::type_identity<call_made_before>{}, bytes) {}
  held_plan_ptr plan;
};

/// Runs it by a plan of its own.
/// @param made  receives the plan
inline report run_once(const single_call& call, held_plan_ptr& made) {
  const auto& given = call.given;
  joint_set_up(given.call, given.comm, given.choices.check_agreement).run([&](joint_set_up& together) {
    refuse_bad_gradient(together, given.call, given.space, call.elements, call.count, given.segments);
    made = call.make(together, plan_purpose::one_call);
  });
  auto& plan = *made->engine;
  return plan.run(call.elements, call.count, plan.problem_with(call.elements, call.count));
}

/// Runs it by a plan that is kept with the communicator. All ranks that make the same calls keep the same plans: what is
/// kept changes only where all of them have set something up together, or all have failed to. Should one have a plan that
/// another has not, they find that they are about to do different things, and forget all of them.
inline report run_as_before(const single_call& call, kept_plans& kept) {
  const auto& given = call.given;
  reduction* made = nullptr;
  joint_set_up(given.call, given.comm, given.choices.check_agreement).run([&](joint_set_up& together) {
    refuse_bad_gradient(together, given.call, given.space, call.elements, call.count, given.segments);
    auto* const found =
        kept.find<call_made_before>([&](const call_made_before& one) { return one.plan->engine->is_for(given); });
    if (found) {
      made = found->plan->engine.get();
      made->meet(together);
      return;
    }
    // Before the ranks have met for the last time: after that, nothing can fail.
    auto now = std::make_unique<call_made_before>(call.count * given.space.element_size());
    now->plan = call.make(together, plan_purpose::kept);
    made = now->plan->engine.get();
    kept.add(std::move(now));
  });
  return made->run(call.elements, call.count, made->problem_with(call.elements, call.count));
}

ADASUM_INLINE report run(const single_call& call, held_plan_ptr& made) {
  auto* const kept = call.keeps_plan ? call.given.comm.kept_plans() : nullptr;
  return kept ? run_as_before(call, *kept) : run_once(call, made);
}

}  // namespace adasum::detail
#endif
