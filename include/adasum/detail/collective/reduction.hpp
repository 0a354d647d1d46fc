// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <string>

#include "../../core/options.hpp"
#include "../../core/report.hpp"
#include "../../core/segments.hpp"
#include "../../core/shard.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/rule_ref.hpp"
#include "../references/schedule_ref.hpp"
#include "../references/space_ref.hpp"
#include "destination.hpp"
#include "joint_set_up.hpp"

namespace adasum::detail {

/// What a plan is made for: the user, who runs it; one call, which then throws it away; or calls that are alike, for which
/// the communicator keeps it (core/kept_plans.hpp).
enum class plan_purpose { of_user, one_call, kept };

/// The arguments of a call that makes a plan. What they refer to must outlive the plan, but for segments, destination and
/// shard.
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

/// A reduction that is set up once and run many times: what an allreduce_plan holds, whatever its type.
class reduction {
 public:
  virtual ~reduction() = default;

  /// A run in flight comes to an end: see allreduce_plan's destructor.
  virtual void abandon() noexcept = 0;
  /// Whether messages may still be in flight, and MPI may write to memory of the plan at any time: then that stays for good.
  virtual bool must_stay() const = 0;
  /// Whether a call with these arguments would set up the same.
  virtual bool is_for(const plan_arguments& call) const = 0;
  virtual segments_view segments() const = 0;
  virtual destination to() const = 0;
  /// What this rank gets of the result.
  virtual index_range wanted() const = 0;
  virtual const report& last_report() const = 0;
  virtual bool is_in_flight() const = 0;

  /// Memory for a gradient. Collective the first time. @param call  for messages
  virtual std::byte* buffer(const char* call) = 0;
  /// The same as a part of a larger set-up.
  virtual std::byte* buffer(joint_set_up& together) = 0;
  /// Before a run for one of several calls: the others may mean another plan, or none.
  virtual void meet(joint_set_up& together) = 0;

  /// What is wrong with a gradient; empty if nothing.
  virtual std::string problem_with(const std::byte* elements, std::size_t count) const = 0;
  // A run: see allreduce_plan. @param problem  what problem_with() says
  virtual const report& run(std::byte* elements, std::size_t count, const std::string& problem) = 0;
  virtual void start(std::byte* elements, std::size_t count, const std::string& problem) = 0;
  virtual bool test() = 0;
  virtual const report& wait() = 0;
};

/// Sets one up, as a part of a larger set-up. @throws what plan_allreduce throws
std::unique_ptr<reduction> new_reduction(const plan_arguments& given, joint_set_up& together);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include "plan.hpp"  // IWYU pragma: keep
#endif
