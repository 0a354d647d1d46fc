// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "all_to_all.hpp"
#include "by_node.hpp"
#include "levels.hpp"
#include "recursive_doubling.hpp"
#include "recursive_halving.hpp"
#include "shared_memory.hpp"

/// What schedules::automatic chooses from.
namespace adasum::detail {

/// A schedule as a value.
struct choice {
  enum kind { doubling, halving, all_to_all, shared_memory };
  kind which;                                   ///< across the nodes, where `by_node` is there (shared_memory: nothing)
  std::size_t radix = 2;                        ///< of doubling, halving, and levels in shared memory
  std::optional<schedules::carried> by_node{};  ///< nodes first, which then carry this
  std::size_t most_parts = any_number_of_parts;  ///< of halving
  std::size_t radix_inside = one_level;          ///< of levels inside a node, where `by_node` is there
  friend constexpr bool operator==(const choice&, const choice&) = default;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (by_node) return stages(node_leaves(node_groups(input.nodes)), rank, input);
    switch (which) {
      case shared_memory: return schedules::shared_memory{radix}.stages(rank, size, input);
      case all_to_all: return schedules::all_to_all{}.stages(rank, size, input);
      case halving: return stages_by_levels(rank, size, input.length, radix, most_parts);
      case doubling: break;
    }
    return stages_by_levels(rank, size, input.length, radix, 1);
  }
  /// Nodes first.
  std::vector<stage> stages(const node_leaves& leaves, int rank, const schedule_input& input) const {
    const auto across = [&](int node, int nodes, const schedule_input& among_nodes) {
      if (which == shared_memory) return std::vector<stage>();
      return choice{which, radix, {}, most_parts}.stages(node, nodes, among_nodes);
    };
    return schedules::stages_by_node(leaves, rank, input, {.each = *by_node, .radix = radix_inside}, across);
  }

  std::string_view name() const {
    if (by_node) return "hierarchical";
    switch (which) {
      case shared_memory: return schedules::shared_memory::name;
      case all_to_all: return schedules::all_to_all::name;
      case halving: return schedules::recursive_halving::name;
      case doubling: break;
    }
    return schedules::recursive_doubling::name;
  }
};

/// What more than two ranks choose from, besides doubling.
inline constexpr std::size_t widest_radix = 32;
inline constexpr std::size_t widest_radix_of_doubling = 8;
inline constexpr std::size_t widest_prime_radix = 128;  ///< see radices()
inline constexpr int most_ranks_all_to_all = 256;       ///< the Gram matrix of more is a message of megabytes

/// The radices of halving that make different levels of so many ranks (levels.hpp): up to widest_radix, and those that
/// keep a larger prime factor from being folded. Wider than widest_prime_radix, folding costs less.
inline std::vector<std::size_t> radices(int size) {
  std::vector<std::size_t> found;
  std::vector<level> last;
  for (std::size_t radix = 2; radix <= widest_radix; ++radix) {
    auto levels = levels_of(static_cast<std::size_t>(size), radix);
    if (radix > 2 && levels == last) continue;
    found.push_back(radix);
    last = std::move(levels);
  }
  for (const auto& one : last)
    if (one.folds && one.radix <= widest_prime_radix && one.radix > found.back()) found.push_back(one.radix);
  return found;
}

/// Doubling with each of these radices that is not too wide for its memory, of (radix - 1)·N elements.
inline std::vector<choice> ways_of_doubling(int size) {
  std::vector<choice> found;
  for (const auto radix : radices(size))
    if (radix <= widest_radix_of_doubling) found.push_back({choice::doubling, radix});
  return found;
}
/// Halving with each of these radices: to the end, and up to each level.
inline std::vector<choice> ways_of_halving(int size) {
  std::vector<choice> found;
  for (const auto radix : radices(size)) {
    found.push_back({choice::halving, radix});
    std::size_t parts = 1;
    for (const auto& one : levels_of(static_cast<std::size_t>(size), radix)) {
      if (parts > 1) found.push_back({choice::halving, radix, {}, parts});
      parts *= one.radix;
    }
  }
  return found;
}

/// Doubling, halving, all_to_all.
inline std::vector<choice> choices(int size) {
  auto found = ways_of_doubling(size);
  for (const auto& one : ways_of_halving(size)) found.push_back(one);
  if (size <= most_ranks_all_to_all) found.push_back({choice::all_to_all});
  return found;
}

}  // namespace adasum::detail
