// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <type_traits>

#include "../../core/concepts.hpp"
#include "../../core/options.hpp"
#include "../../core/parts.hpp"
#include "../../core/segments.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "result_layout.hpp"

namespace adasum::detail {

/// What a plan is made for: the user, who runs it; one call, which then throws it away; or calls that are alike, for which
/// the communicator keeps it (core/communicator_state.hpp).
enum class plan_purpose { of_user, one_call, kept };

/// The arguments of a call that makes a plan. A plan copies what they refer to; plan_inputs copies
/// segments, destination and shard only.
struct plan_arguments {
  const char* call;  ///< the user's, for messages
  space_ref space;
  communicator_ref comm;
  rule_ref rule;
  schedule_ref schedule;
  segments_view segments;
  basic_options<true> choices;  ///< of one type in builds with NDEBUG and without
  plan_purpose purpose = plan_purpose::of_user;
  result_layout to{};           ///< which ranks get the result; for a gradient in shards, all of it every rank
  const shard* mine = nullptr;  ///< this rank's shard; null if it has a gradient of its own
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

}  // namespace adasum::detail
