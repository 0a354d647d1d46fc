// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "../detail/references/erased.hpp"
#include "levels.hpp"
#include "partition.hpp"

/// Stages of nodes: first among the ranks of each node, in one stage or by levels, then across the nodes.
namespace adasum::schedules {

/// What a rank of a node takes across to the other nodes.
enum class carried {
  shard,            ///< one part of the node's combination; there are as many parts as the smallest node has ranks
  whole,            ///< all of it: every rank of the node has combined the whole, which takes fewer messages
  whole_by_leader,  ///< all of it, carried by one rank of each node alone, the leader: each byte crosses the node's link once.
                    ///< The others wait for the result
};

/// What is done inside a node.
struct inside_node {
  carried each = carried::shard;  ///< what a rank takes across
  bool by_inner_rule = false;     ///< see stage::inner: for schedules::hierarchical
  bool even_alone = false;        ///< whether a node of one rank has a stage, too (a rule may change a single vector)
  /// The most ranks of a node that meet at a level (levels.hpp), at least 2. One level, if the rule inside is not applied
  /// along the tree.
  std::size_t radix = detail::one_level;
};

}  // namespace adasum::schedules

namespace adasum::detail {

/// A range of the longest share's elements as one of those of another share, which may have one element less.
constexpr index_range moved_into(index_range share, index_range some) {
  return {share.begin + std::min(some.begin, share.size()), share.begin + std::min(some.end, share.size())};
}

/// How many ranks of each node carry something across.
inline std::size_t carriers_of_node(const node_groups& groups, schedules::carried each) {
  return each == schedules::carried::whole_by_leader ? 1 : groups.smallest();
}

/// Node by node, these ranks, in the order of their shares.
inline std::vector<int> carriers_of_nodes(const node_groups& groups, std::size_t radix, std::size_t shares) {
  std::vector<int> found;
  std::vector<std::size_t> places;  // of a node of as many ranks as `known`
  std::size_t known = 0;
  for (std::size_t node = 0; node < groups.size(); ++node) {
    const auto ranks = groups.ranks(node);
    if (ranks.size() != known) places = level_tree(ranks.size(), radix, large_primes::kept, shares).carriers();
    known = ranks.size();
    for (const auto place : places) found.push_back(ranks[place]);
  }
  return found;
}

/// Stages among nodes as they run among the ranks that carry a share.
inline void move_to_carriers(std::vector<stage>& stages, const node_leaves& leaves,
                             const schedules::inside_node& inside, std::size_t share, index_range all) {
  const auto shares = carriers_of_node(leaves.groups(), inside.each);
  const bool by_shards = inside.each != schedules::carried::whole;
  const auto carriers = carriers_of_nodes(leaves.groups(), inside.radix, shares);
  const auto carrier = [&](int node, std::size_t i) { return carriers[static_cast<std::size_t>(node) * shares + i]; };
  const auto mine = by_shards ? part_of(all, shares, share) : all;
  for (auto& one : stages) {
    const auto nodes_summed = std::move(one.sum_over);
    one.sum_over.clear();
    for (const int node : nodes_summed)
      for (std::size_t i = 0; i < shares; ++i)
        if (by_shards || i == share) one.sum_over.push_back(carrier(node, i));
    for (int& member : one.members) member = carrier(member, share);
    for (auto& leaf : one.leaf_offsets) leaf = leaves.at(leaf);
    one.held = moved_into(mine, one.held);
    for (auto& part : one.parts) part = moved_into(mine, part);
  }
}

}  // namespace adasum::detail

namespace adasum::schedules {

/// The stages of each node's ranks, and then, for as many ranks of each node as the smallest has, or for one, those stages
/// across the nodes that across(node, number of nodes, input) gives, if any.
/// @param leaves  which rank's gradient is which leaf
/// @param input   of the whole gradient
/// @param across  a schedule's stages: for `whole`, of one whose stages are replicated (recursive_doubling)
inline std::vector<stage> stages_by_node(
    const node_leaves& leaves, int rank, const schedule_input& input, const inside_node& inside,
    detail::function_ref<std::vector<stage>(int node, int nodes, const schedule_input& among_nodes)> across) {
  const auto& groups = leaves.groups();
  const bool by_shards = inside.each != carried::whole;  // a leader's is the only one
  const auto shares = detail::carriers_of_node(groups, inside.each);
  const auto [node, place] = groups.find(rank);
  const auto mates = groups.ranks(node);
  const index_range all{0, input.length};
  const detail::level_tree levels(mates.size(), inside.radix, detail::large_primes::kept, shares);

  std::vector<stage> stages;
  if (mates.size() > 1 || inside.even_alone)
    stages = levels.stages(place, all, by_shards ? detail::any_number_of_parts : 1);
  for (auto& one : stages) {
    for (int& member : one.members) member = mates[static_cast<std::size_t>(member)];
    for (int& other : one.sum_over) other = mates[static_cast<std::size_t>(other)];
    for (auto& leaf : one.leaf_offsets) leaf += leaves.of_node(node);
    one.inner = inside.by_inner_rule;
  }
  const auto share = levels.share_of(place);
  // A rule along the tree leaves a single vector as it is; another need not.
  if (!share || (groups.size() == 1 && input.along_tree)) return stages;

  auto among_nodes = input;
  among_nodes.nodes = {};
  among_nodes.apart = true;
  among_nodes.in_place = false;
  // The shards' inner products are summed together, so all of them take the same stages: those of the longest, cut to
  // each. (One that chooses by the length could choose differently for one element more.)
  if (by_shards) among_nodes.length = (all.size() + shares - 1) / shares;
  auto others = across(static_cast<int>(node), static_cast<int>(groups.size()), among_nodes);
  if (!others.empty()) detail::move_to_carriers(others, leaves, inside, *share, all);
  for (auto& one : others) stages.push_back(std::move(one));
  return stages;
}

}  // namespace adasum::schedules
