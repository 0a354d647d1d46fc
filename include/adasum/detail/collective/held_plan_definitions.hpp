// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "../../core/error.hpp"
#include "../../core/input_checks.hpp"
#include "../../core/kept_plans.hpp"
#include "held_plan.hpp"

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
