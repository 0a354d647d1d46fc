// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>

#include "../../core/report.hpp"
#include "../references/space_ref.hpp"
#include "collective_setup.hpp"
#include "plan.hpp"
#include "plan_arguments.hpp"

namespace adasum::detail {

/// Tells the other ranks of a gradient that cannot be reduced, and of segments that do not fit it, before the ranks act
/// on their segments: this rank's may differ from theirs. @throws what collective_setup::refuse throws
void refuse_bad_gradient(collective_setup& together, const char* call, const space_ref& space,
                         const std::byte* elements, std::size_t count, segments_view segments);

/// Runs a single call: by a plan that is kept with the communicator, or by one of its own. A plan is kept for calls that can be
/// told apart and that a plan can outlive: not if it would hold memory of a device, a rule's state or an inner rule.
/// @param made  receives the plan of its own
report run_once(const plan_arguments& given, std::byte* elements, std::size_t count, plan_ptr& made);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <string>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "../../core/input_checks.hpp"

namespace adasum::detail {

ADASUM_INLINE void refuse_bad_gradient(collective_setup& together, const char* call, const space_ref& space,
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
  plan_ptr plan;
};

inline bool can_be_kept(const plan_arguments& given) {
  // Calls with shards may be alike on one rank, and not on another that has another shard.
  return given.comm.state() && given.choices.keep_plan && given.mine == nullptr && given.comm.size() > 1 &&
         given.space.may_be_kept() && !given.schedule.has_inner_rule() && !given.rule.has_state();
}

/// All ranks that make the same calls keep the same plans: what is kept changes only where all of them have set something up
/// together, or all have failed to. Should one have a plan that another has not, they find that they are about to do different
/// things, and forget all of them.
ADASUM_INLINE report run_once(const plan_arguments& given, std::byte* elements, std::size_t count,
                              plan_ptr& made) {
  auto* const kept = can_be_kept(given) ? &given.comm.state()->plans() : nullptr;
  plan* chosen = nullptr;
  bool is_again = false;
  collective_setup(given.call, given.comm, given.choices.check_agreement).run([&](collective_setup& together) {
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
      is_again = true;
      chosen->communicate_by(given.comm);
      chosen->start_call(elements);
      return;
    }
    // Before the ranks have met for the last time: after that, nothing can fail.
    auto now = std::make_unique<call_made_before>(count * given.space.element_size());
    now->plan.reset(new plan(once, together));
    chosen = now->plan.get();
    kept->add(std::move(now));
  });
  if (!is_again) return chosen->run(elements, count, chosen->problem_with(elements, count));
  const report* found = nullptr;
  try {
    found = &chosen->wait();
  } catch (...) {
    if (chosen->did_not_agree()) kept->clear();
    throw;
  }
  return *found;  // where that fails, for lack of memory, the others know nothing of it
}

}  // namespace adasum::detail
#endif
