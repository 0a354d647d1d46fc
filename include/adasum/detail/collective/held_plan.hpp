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
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "destination.hpp"
#include "joint_set_up.hpp"
#include "plan.hpp"
#include "plan_arguments.hpp"

/// From the arguments of a call to a plan, and a single call.
namespace adasum::detail {

// ── from the arguments of a call ──

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

// ── single calls ──

/// Tells the other ranks of a gradient that cannot be reduced, and of segments that do not fit it, before the ranks act
/// on their segments: this rank's may differ from theirs. @throws what joint_set_up::refuse throws
void refuse_bad_gradient(joint_set_up& together, const char* call, const space_ref& space, const std::byte* elements,
                         std::size_t count, segments_view segments);

/// Runs a single call: by a plan that is kept with the communicator, or by one of its own. A plan is kept for calls that can be
/// told apart and that a plan can outlive: not if it would hold memory of a device, a rule's state or an inner rule.
/// @param made  receives the plan of its own
report run_once(const plan_arguments& given, std::byte* elements, std::size_t count, held_plan_ptr& made);

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

inline bool can_be_kept(const plan_arguments& given) {
  // Calls with shards may be alike on one rank, and not on another that has another shard.
  return given.choices.keep_plan && given.mine == nullptr && given.comm.size() > 1 &&
         given.space.may_be_kept() && !given.schedule.has_inner_rule() && !given.rule.has_state();
}

/// All ranks that make the same calls keep the same plans: what is kept changes only where all of them have set something up
/// together, or all have failed to. Should one have a plan that another has not, they find that they are about to do different
/// things, and forget all of them.
ADASUM_INLINE report run_once(const plan_arguments& given, std::byte* elements, std::size_t count,
                              held_plan_ptr& made) {
  auto* const kept = can_be_kept(given) ? given.comm.kept_plans() : nullptr;
  plan* chosen = nullptr;
  joint_set_up(given.call, given.comm, given.choices.check_agreement).run([&](joint_set_up& together) {
    refuse_bad_gradient(together, given.call, given.space, elements, count, given.segments);
    auto once = given;
    once.purpose = kept ? plan_purpose::kept : plan_purpose::one_call;
    if (!kept) {
      made.reset(new plan(once, together));
      chosen = made.get();
      return;
    }
    auto* const found =
        kept->find<call_made_before>([&](const call_made_before& one) { return one.plan->is_for(given); });
    if (found) {
      chosen = found->plan.get();
      chosen->meet(together);
      return;
    }
    // Before the ranks have met for the last time: after that, nothing can fail.
    auto now = std::make_unique<call_made_before>(count * given.space.element_size());
    now->plan.reset(new plan(once, together));
    chosen = now->plan.get();
    kept->add(std::move(now));
  });
  return chosen->run(elements, count, chosen->problem_with(elements, count));
}

}  // namespace adasum::detail
#endif
