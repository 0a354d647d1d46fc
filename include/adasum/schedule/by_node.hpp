// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "node_levels.hpp"
#include "partition.hpp"

/// Stages of nodes: first among the ranks of each node, in one stage or by levels, then across the nodes.
namespace adasum::schedules {

/// What a rank of a node takes across to the other nodes.
enum class carried {
  shard,  ///< one part of the node's combination; there are as many parts as the smallest node has ranks
  whole,  ///< all of it: every rank of the node has combined the whole, which takes fewer messages
};

/// What is done inside a node.
struct inside_node {
  carried each = carried::shard;  ///< what a rank takes across
  bool by_inner_rule = false;     ///< see stage::inner
  bool even_alone = false;        ///< whether a node of one rank has a stage, too (a rule may change a single vector)
  /// The most ranks of a node that meet at a level (node_levels.hpp), at least 2. One level, if the rule inside is not applied
  /// along the tree.
  std::size_t radix = detail::one_level;
};

/// The stages of each node's ranks, and then, for as many ranks of each node as the smallest has, those stages across the
/// nodes that across(node, number of nodes, input) gives.
/// @param leaves  which rank's gradient is which leaf
/// @param input   of the whole gradient
/// @param across  a schedule's stages: for `whole`, of one whose stages are replicated (recursive_doubling)
template <class Across>
std::vector<stage> stages_by_node(const node_leaves& leaves, int rank, const schedule_input& input,
                                  const inside_node& inside, Across&& across) {
  const auto& groups = leaves.groups();
  const bool shards = inside.each == carried::shard;
  const auto carriers = groups.smallest();
  const auto [node, place] = groups.find(rank);
  const auto mates = groups.ranks(node);
  const index_range all{0, input.length};
  std::map<std::size_t, detail::node_levels> levels_by_size;
  const auto levels_of = [&](std::size_t n) -> const detail::node_levels& {
    const auto size = groups.ranks(n).size();
    return levels_by_size.try_emplace(size, size, carriers, inside.radix).first->second;
  };

  std::vector<stage> stages;
  if (mates.size() > 1 || inside.even_alone) {
    stages = levels_of(node).stages(place, all, shards);
    const auto to_rank = [&](int& at) { at = mates[static_cast<std::size_t>(at)]; };
    for (auto& one : stages) {
      std::ranges::for_each(one.members, to_rank);
      std::ranges::for_each(one.sum_over, to_rank);
      for (auto& leaf : one.leaf_offsets) leaf += leaves.of_node(node);
      one.inner = inside.by_inner_rule;
    }
  }
  const auto share = levels_of(node).share_of(place);
  // A rule along the tree leaves a single vector as it is; another need not.
  if (!share || (groups.size() == 1 && input.along_tree)) return stages;

  const auto carrier = [&](std::size_t n, std::size_t i) { return groups.ranks(n)[levels_of(n).carrier_of(i)]; };
  const auto mine = shards ? detail::part_of(all, carriers, *share) : all;
  auto among_nodes = input;
  among_nodes.nodes = {};
  among_nodes.apart = true;
  among_nodes.in_place = false;
  // The shards' inner products are summed together, so all of them take the same stages: those of the longest, cut to
  // each. (One that chooses by the length could choose differently for one element more.)
  if (shards) among_nodes.length = (all.size() + carriers - 1) / carriers;
  for (auto& stage : across(static_cast<int>(node), static_cast<int>(groups.size()), among_nodes)) {
    std::vector<int> sum_over;
    for (const int n : stage.sum_over) {
      const auto there = static_cast<std::size_t>(n);
      if (!shards) sum_over.push_back(carrier(there, *share));
      for (std::size_t i = 0; shards && i < carriers; ++i) sum_over.push_back(carrier(there, i));
    }
    stage.sum_over = std::move(sum_over);
    for (int& member : stage.members) member = carrier(static_cast<std::size_t>(member), *share);
    for (auto& leaf : stage.leaf_offsets) leaf = leaves.at(leaf);
    const auto shift = [&](index_range range) {
      return index_range{mine.begin + std::min(range.begin, mine.size()),
                         mine.begin + std::min(range.end, mine.size())};
    };
    stage.held = shift(stage.held);
    for (auto& part : stage.parts) part = shift(part);
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace adasum::schedules
