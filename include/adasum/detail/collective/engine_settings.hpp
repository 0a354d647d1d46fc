// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/options.hpp"
#include "../../core/stage.hpp"

namespace adasum::detail {

/// For schedules without an inner rule.
struct no_inner_rule {
  static constexpr std::string_view name = "none";
  ADASUM_HOST_DEVICE pair_weights operator()(const pair_gram&) const { return {1, 1}; }
};

/// The rule that a schedule brings for its inner stages.
template <class Schedule>
auto inner_rule_of(const Schedule& schedule) {
  if constexpr (requires { schedule.inner; })
    return schedule.inner;
  else
    return no_inner_rule{};
}
template <class Schedule>
using inner_rule_t = decltype(inner_rule_of(std::declval<const Schedule&>()));

/// How a reduction sends its data: by messages, and in memory that the ranks share where the plan asks for it.
struct transport_settings {
  wire_format wire = wire_format::same;
  std::chrono::duration<double> timeout = std::chrono::seconds(60);
  bool in_shared_memory = false;
};

/// What an engine is told when it is made: what the stages are, and how to go about them.
template <rule Inner>
struct engine_settings {
  std::vector<stage> stages;
  std::string_view schedule_name;
  Inner inner;                    ///< for the stages marked so
  std::vector<int> leaf_ranks{};  ///< which rank's gradient is which leaf; empty: each its own
  bool measure = true;            ///< whether rules that need no Gram matrix are measured all the same
  nonfinite_policy nonfinite = nonfinite_policy::propagate;
  transport_settings transport{};
};

}  // namespace adasum::detail
