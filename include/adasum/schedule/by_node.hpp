// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "../core/node_groups.hpp"
#include "../core/stage.hpp"
#include "levels.hpp"
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
  /// The most ranks of a node that meet at a level (levels.hpp), at least 2. One level, if the rule inside is not applied
  /// along the tree.
  std::size_t radix = detail::one_level;
};

}  // namespace adasum::schedules

namespace adasum::detail {

/// One rank of a node: its stages inside, and what it does across.
class rank_of_node {
 public:
  /// @param leaves  which rank's gradient is which leaf
  /// @param input   of the whole gradient
  rank_of_node(const node_leaves& leaves, int rank, const schedule_input& input, const schedules::inside_node& how)
      : leaves_(leaves),
        input_(input),
        how_(how),
        shares_(leaves.groups().smallest()),
        node_(leaves.groups().find(rank).node),
        place_(leaves.groups().find(rank).place),
        levels_(levels_of(node_)),
        share_(levels_.share_of(place_)) {}

  /// The stages inside the node.
  std::vector<stage> inside() const {
    const auto mates = leaves_.groups().ranks(node_);
    if (mates.size() == 1 && !how_.even_alone) return {};
    auto stages = levels_.stages(place_, all(), by_shards() ? any_number_of_parts : 1);
    for (auto& one : stages) {
      for (int& member : one.members) member = mates[static_cast<std::size_t>(member)];
      for (int& other : one.sum_over) other = mates[static_cast<std::size_t>(other)];
      for (auto& leaf : one.leaf_offsets) leaf += leaves_.of_node(node_);
      one.inner = how_.by_inner_rule;
    }
    return stages;
  }

  /// Whether the rank takes something across. (A rule along the tree leaves a single vector as it is; another need not.)
  bool goes_across() const { return share_ && (nodes() > 1 || !input_.along_tree); }
  int node() const { return static_cast<int>(node_); }
  int nodes() const { return static_cast<int>(leaves_.groups().size()); }

  /// What a schedule across the nodes is asked with. The shards' inner products are summed together, so all of them take the
  /// same stages: those of the longest, cut to each. (One that chooses by the length could choose differently for one element
  /// more.)
  schedule_input among_nodes() const {
    auto found = input_;
    found.nodes = {};
    found.apart = true;
    found.in_place = false;
    if (by_shards()) found.length = (input_.length + shares_ - 1) / shares_;
    return found;
  }

  /// Stages across the nodes, from those in which the members are nodes. @pre goes_across()
  void append_across(std::vector<stage>& stages, std::vector<stage> across) const {
    const auto mine = by_shards() ? part_of(all(), shares_, *share_) : all();
    const auto shift = [&](index_range& range) {
      range = {mine.begin + std::min(range.begin, mine.size()), mine.begin + std::min(range.end, mine.size())};
    };
    const auto carriers = carriers_of_nodes();
    for (auto& one : across) {
      const auto nodes_summed = std::move(one.sum_over);
      one.sum_over.clear();
      for (const int node : nodes_summed)
        for (std::size_t i = 0; i < shares_; ++i)
          if (by_shards() || i == *share_)
            one.sum_over.push_back(carriers[static_cast<std::size_t>(node) * shares_ + i]);
      for (int& member : one.members) member = carriers[static_cast<std::size_t>(member) * shares_ + *share_];
      for (auto& leaf : one.leaf_offsets) leaf = leaves_.at(leaf);
      shift(one.held);
      for (auto& part : one.parts) shift(part);
      stages.push_back(std::move(one));
    }
  }

 private:
  bool by_shards() const { return how_.each == schedules::carried::shard; }
  index_range all() const { return {0, input_.length}; }
  level_tree levels_of(std::size_t node) const {
    return {leaves_.groups().ranks(node).size(), how_.radix, large_primes::kept, shares_};
  }
  /// Node by node, the rank that has each share.
  std::vector<int> carriers_of_nodes() const {
    std::vector<int> found;
    for (std::size_t node = 0; node < leaves_.groups().size(); ++node) {
      const auto mates = leaves_.groups().ranks(node);
      const auto append = [&](const level_tree& levels) {
        for (std::size_t i = 0; i < shares_; ++i) found.push_back(mates[levels.carrier_of(i)]);
      };
      mates.size() == leaves_.groups().ranks(node_).size() ? append(levels_) : append(levels_of(node));
    }
    return found;
  }

  const node_leaves& leaves_;
  const schedule_input& input_;
  schedules::inside_node how_;
  std::size_t shares_, node_, place_;
  level_tree levels_;
  std::optional<std::size_t> share_;  // none: the rank has stayed behind
};

}  // namespace adasum::detail

namespace adasum::schedules {

/// The stages of each node's ranks, and then, for as many ranks of each node as the smallest has, those stages across the
/// nodes that across(node, number of nodes, input) gives.
/// @param leaves  which rank's gradient is which leaf
/// @param input   of the whole gradient
/// @param across  a schedule's stages: for `whole`, of one whose stages are replicated (recursive_doubling)
template <class Across>
std::vector<stage> stages_by_node(const node_leaves& leaves, int rank, const schedule_input& input,
                                  const inside_node& inside, Across&& across) {
  const detail::rank_of_node me(leaves, rank, input, inside);
  auto stages = me.inside();
  if (me.goes_across()) me.append_across(stages, across(me.node(), me.nodes(), me.among_nodes()));
  return stages;
}

}  // namespace adasum::schedules
