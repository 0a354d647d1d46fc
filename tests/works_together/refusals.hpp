// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <adasum/core/concepts.hpp>
#include <adasum/core/stage.hpp>

#include "combination.hpp"

/// Which combinations are refused, as the documentation says, and in which words. Everything else has to work.
namespace adasum::test {

/// Where ranks are.
struct setting {
  std::string name;
  std::vector<int> nodes{};      ///< as the communicator tells them; empty: one
  bool all_share_memory = true;  ///< as far as the communicator offers it
};

/// What refuses a combination, and in which words: a part of what the compiler or an exception says.
struct refusal {
  bool by_compiler;
  std::string_view message;
  std::string_view where_any{};  ///< an any_communicator says this instead
  std::string word() const { return (by_compiler ? "compiler: " : "call: ") + std::string(message); }
};
/// The words of the compiler are those of a test of their own, tests/package/compile_fail/schedule_for.cpp.
inline constexpr refusal pair_by_pair{true, "schedule_for"},
    of_float_only{false, "options::wire needs float gradients"},
    shards_by_messages{false, "works in shared memory only, but shards are reduced by messages"},
    no_stage_of_all{false, "has no stage that combines all gradients at once, which the rule needs for gradients in shards"},
    no_shared_memory{false, "needs ranks that all share memory", "share no memory"};

/// What a rule asks of a schedule.
struct rule_kind {
  bool compiles;  ///< with the schedule
  bool by_sums;   ///< it runs by sums of vectors where there are several stages
};

/// @param gradients  how many are combined; @param ranks  on so many ranks
inline std::optional<refusal> refusal_of(const combination& one, const setting& where, const rule_kind& rule, int gradients,
                                         int ranks, std::size_t length) {
  const bool works_in_memory_only = std::holds_alternative<schedules::shared_memory>(one.schedule->order) && !one.by_node;
  if (!rule.compiles) return pair_by_pair;
  if (one.choices.wire != wire_format::same && one.type != element::of_float) return of_float_only;
  if (one.has_shard && works_in_memory_only) return shards_by_messages;
  if (one.has_shard && rule.by_sums && !one.by_node &&
      one.schedule->stages(0, gradients, {.length = length, .element_size = 4}).size() > 1)
    return no_stage_of_all;
  if (works_in_memory_only && !where.all_share_memory && ranks > 1) return no_shared_memory;
  return {};
}

/// Whether an exception says so. Where ranks compare what they are about to do, an agreement_error may tell of it.
inline bool says(const refusal& why, std::string_view message) {
  return message.find(why.message) != message.npos ||
         (!why.where_any.empty() && message.find(why.where_any) != message.npos);
}

}  // namespace adasum::test
