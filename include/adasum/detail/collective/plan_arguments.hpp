// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "../../core/options.hpp"
#include "../../core/segments.hpp"
#include "../../core/shard.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "destination.hpp"

namespace adasum::detail {

/// What a plan is made for: the user, who runs it; one call, which then throws it away; or calls that are alike, for which
/// the communicator keeps it (core/kept_plans.hpp).
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
  destination to{};             ///< which ranks get the result; for a gradient in shards, all of it every rank
  const shard* mine = nullptr;  ///< this rank's shard; null if it has a gradient of its own
};

}  // namespace adasum::detail
