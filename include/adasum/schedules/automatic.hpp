// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <optional>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/stage.hpp"
#include "machine.hpp"

namespace adasum::schedules {

/// Chooses a schedule by the gradient's length, the number of ranks, and their nodes. This is the only place where a choice
/// is made.
///
/// Where ranks are on several nodes, and a node has several of them (schedule_input::nodes), a rule that is applied along a
/// tree combines the gradients of each node first, and then those of the nodes: the tree of node_groups.hpp, whatever the
/// length. With R ranks on each node, each of them carries 1/R of the node's combination across; or, if it is short, one or
/// all of them carry all of it. More than eight ranks of a node combine by levels, those that cost least; and so do fewer,
/// where one of them carries all of it.
struct automatic {
  static constexpr std::string_view name = "automatic";
  static constexpr bool supports_gram_rules = true;

  /// Whether a plan may work in memory that the ranks share. If not, it always sends messages.
  bool in_place = true;
  /// Whether the tree, and the choice, follow the nodes. If not, they depend on the number of ranks alone, and messages are
  /// sent whether ranks share memory or not, so that a run can be repeated to the last bit with another placement.
  bool follows_nodes = true;
  /// The constants by which schedules are compared. They can be measured, and kept in a file: docs/tuning.md.
  std::optional<machine> on{};
  friend constexpr bool operator==(const automatic&, const automatic&) = default;

  /// Copying a gradient to shared memory and back is less work than messages, whose bytes are copied too. But making
  /// that memory takes longer than one reduction, so a single call sends messages. In plan.buffer() nothing is copied.
  /// On several nodes, the ranks of each can work in place in plan.buffer().
  shared_memory_use uses_shared_memory(int size, const schedule_input& input) const;

  /// @throws bad_input  a constant of the machine is negative or not finite
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;

  /// See the concept schedule.
  std::vector<double> parameters() const;

  /// The name of the schedule that runs.
  std::string_view chosen_name(int size, const schedule_input& input) const;

  /// @cond internal
  friend std::string_view chosen_name_of(detail::own_type, const automatic& order, int size,
                                         const schedule_input& input) {
    return order.chosen_name(size, input);
  }
  /// @endcond

  /// Which rank's gradient is which leaf: node by node.
  std::vector<int> leaf_ranks(int size, const schedule_input& input) const;

 private:
  schedule_input as_followed(schedule_input input) const;
};

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include <string>

#include "../core/error.hpp"
#include "../core/node_groups.hpp"
#include "cheapest.hpp"

namespace adasum::schedules {

ADASUM_INLINE shared_memory_use automatic::uses_shared_memory(int size, const schedule_input& input) const {
  if (!in_place || !follows_nodes) return shared_memory_use::none;
  if (const auto known = as_followed(input); known.along_tree && !known.nodes.empty())
    return detail::pays_in_buffer_by_node(size, known, on) ? shared_memory_use::buffer : shared_memory_use::none;
  return !input.once && detail::pays_in_place(size, input, on) ? shared_memory_use::preferred
                                                               : shared_memory_use::buffer_if_all;
}

ADASUM_INLINE std::vector<stage> automatic::stages(int rank, int size, const schedule_input& input) const {
  if (const auto bad = on ? bad_constant_of(*on) : std::string(); !bad.empty())
    throw bad_input({"adasum::schedules::automatic: the machine's ", bad, " is negative or not finite"});
  return detail::choose_schedule(size, as_followed(input.of_whole()), on).stages(rank, size, input);
}

ADASUM_INLINE std::vector<double> automatic::parameters() const {
  std::vector<double> all{in_place ? 1. : 0., follows_nodes ? 1. : 0.};
  if (!on) return all;
  for (const double one : constants_of(*on)) all.push_back(one);
  return all;
}

ADASUM_INLINE std::string_view automatic::chosen_name(int size, const schedule_input& input) const {
  return detail::choose_schedule(size, as_followed(input), on).name();
}

ADASUM_INLINE std::vector<int> automatic::leaf_ranks(int, const schedule_input& input) const {
  const auto known = as_followed(input);
  return known.along_tree && !known.nodes.empty() ? node_leaves(node_groups(known.nodes)).ranks() : std::vector<int>();
}

ADASUM_INLINE schedule_input automatic::as_followed(schedule_input input) const {
  if (follows_nodes) return input;
  input.nodes = {};
  input.apart = false;
  return input;
}

}  // namespace adasum::schedules
#endif
