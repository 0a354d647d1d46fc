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
  std::string word() const { return (by_compiler ? "compiler: " : "call: ") + std::string(message); }
};
/// The words of the compiler are those of a test of their own, tests/package/compile_fail/schedule_for.cpp.
inline constexpr refusal pair_by_pair{true, "schedule_for"},
    of_float_only{false, "options::wire needs float gradients"},
    shards_by_messages{false, "works in shared memory only, but shards are reduced by messages"},
    no_shared_memory{false, "needs ranks that all share memory"};

/// @param compiles  whether the rule compiles with the schedule; @param ranks  on so many ranks
inline std::optional<refusal> refusal_of(const combination& one, const setting& where, bool compiles, int ranks) {
  const bool works_in_memory_only =
      std::holds_alternative<schedules::shared_memory>(one.schedule->order) && !one.by_node;
  if (!compiles) return pair_by_pair;
  if (one.choices.wire != wire_format::same && one.type != element::of_float) return of_float_only;
  if (one.has_shard && works_in_memory_only) return shards_by_messages;
  if (works_in_memory_only && !where.all_share_memory && ranks > 1) return no_shared_memory;
  return {};
}

/// Whether an exception says so. Where ranks compare what they are about to do, an agreement_error may tell of it.
inline bool says(const refusal& why, std::string_view message) { return message.find(why.message) != message.npos; }

}  // namespace adasum::test
