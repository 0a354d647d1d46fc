// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "partition.hpp"

/// Stages of two levels: first among the ranks of each node, then across the nodes.
namespace adasum::schedules {

/// What a rank of a node takes across to the other nodes.
enum class carried {
  shard,  ///< one part of the node's combination; there are as many parts as the smallest node has ranks
  whole,  ///< all of it: every rank of the node has combined the whole, which takes fewer messages
};

/// What is done inside a node.
struct inside_node {
  carried each = carried::shard;
  bool by_inner_rule = false;  ///< see stage::inner
  bool even_alone = false;     ///< whether a node of one rank has that stage, too (a rule may change a single vector)
};

/// One stage of each node's ranks, and then, for as many ranks of each node as the smallest has, those stages across the
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
  const auto carried_by = [&](std::size_t i) { return shards ? detail::part_of(all, carriers, i) : all; };

  std::vector<stage> stages;
  if (mates.size() > 1 || inside.even_alone) {
    stage one;
    one.members.assign(mates.begin(), mates.end());
    one.self = place;
    for (std::size_t i = 0; i <= mates.size(); ++i) one.leaf_offsets.push_back(leaves.of_node(node) + i);
    one.survivors = carriers;
    one.held = all;
    for (std::size_t i = 0; i < carriers; ++i) one.parts.push_back(carried_by(i));
    if (shards)
      one.sum_over.assign(mates.begin(), mates.begin() + static_cast<std::ptrdiff_t>(carriers));
    else
      one.sum_over = {rank};
    one.inner = inside.by_inner_rule;
    stages.push_back(std::move(one));
  }
  // A rule along the tree leaves a single vector as it is; another need not.
  if (place >= carriers || (groups.size() == 1 && input.along_tree)) return stages;

  const auto mine = carried_by(place);
  auto among_nodes = input;
  among_nodes.nodes = {};
  among_nodes.in_place = false;
  // The shards' inner products are summed together, so all of them take the same stages: those of the longest, cut to
  // each. (One that chooses by the length could choose differently for one element more.)
  if (shards) among_nodes.length = (all.size() + carriers - 1) / carriers;
  for (auto& stage : across(static_cast<int>(node), static_cast<int>(groups.size()), among_nodes)) {
    std::vector<int> sum_over;
    for (const int n : stage.sum_over) {
      const auto ranks = groups.ranks(static_cast<std::size_t>(n));
      if (shards)
        sum_over.insert(sum_over.end(), ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(carriers));
      else
        sum_over.push_back(ranks[place]);
    }
    stage.sum_over = std::move(sum_over);
    for (int& member : stage.members) member = groups.ranks(static_cast<std::size_t>(member))[place];
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
