// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "automatic.hpp"
#include "partition.hpp"

namespace adasum::schedules {

/// Two levels: an inner rule among the ranks of each node, the call's rule across the nodes.
///
///     result = rule over the nodes j of (inner over the gradients of node j's ranks)
///
/// Nodes are ordered by their lowest ranks, and the ranks of a node by rank. Inside a node the gradients are
/// cut into as many shards as the smallest node has ranks; each shard then goes across the nodes by the outer schedule,
/// with inner products summed over all shards, and the shards are gathered inside the nodes. Each weight is applied
/// before anything is added, so an inner mean of 16-bit elements does not overflow where their sum would.
///
///     adasum::schedules::hierarchical order{comm.nodes(), adasum::rules::mean{}};
///
/// A reduction has one inner rule, so `outer` has none: more levels than two are no schedule of this kind.
///
/// Maleki et al., MLSys 2021, section 4 (the sum or mean inside a node, Adasum across nodes); the same with
/// rules::adasum inside the node as well.
template <rule Inner, schedule Outer = automatic>
struct hierarchical {
  static_assert(
      !requires(const Outer& across) { across.inner; },
      "give adasum::schedules::hierarchical a schedule across the nodes that has no inner rule of its own: a "
      "reduction has one inner rule");

  static constexpr std::string_view name = "hierarchical";
  static constexpr bool supports_gram_rules = Outer::supports_gram_rules;

  /// The node of each rank: any numbers, equal for ranks of one node. See mpi_communicator::nodes().
  std::vector<int> node_of_rank;
  Inner inner{};
  Outer outer{};

  /// @throws bad_input  if node_of_rank does not name a node for each rank
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    const auto nodes = ranks_by_node(size);
    std::size_t shards = nodes.front().size();
    for (const auto& ranks : nodes) shards = std::min(shards, ranks.size());
    const auto [node, place] = find(nodes, rank);
    const auto& mates = nodes[node];
    const index_range all{0, input.length};

    std::vector<std::size_t> first_leaf{0};
    for (const auto& ranks : nodes) first_leaf.push_back(first_leaf.back() + ranks.size());

    std::vector<stage> stages;
    // A pairwise rule leaves a single vector as it is, of a rank or of a node; another need not.
    const bool inner_only = nodes.size() == 1 && input.along_tree;
    if (mates.size() > 1 || inner_only || !pairwise_rule<Inner>) {
      stage one;
      one.members = mates;
      one.self = place;
      for (std::size_t i = 0; i <= mates.size(); ++i) one.leaf_offsets.push_back(first_leaf[node] + i);
      one.survivors = shards;
      one.held = all;
      for (std::size_t i = 0; i < shards; ++i) one.parts.push_back(detail::part_of(all, shards, i));
      one.sum_over.assign(mates.begin(), mates.begin() + static_cast<std::ptrdiff_t>(shards));
      one.inner = true;
      stages.push_back(std::move(one));
    }
    if (place >= shards || inner_only) return stages;

    const auto shard = detail::part_of(all, shards, place);
    auto among_nodes = input;
    // The shards' inner products are summed together, so all of them take the same stages: those of the longest, cut to
    // each. (One that chooses by the length could choose differently for one element more.)
    among_nodes.length = (all.size() + shards - 1) / shards;
    among_nodes.in_place = false;
    for (auto stage : outer.stages(static_cast<int>(node), static_cast<int>(nodes.size()), among_nodes)) {
      std::vector<int> sum_over;
      for (const int n : stage.sum_over) {
        const auto& ranks = nodes[static_cast<std::size_t>(n)];
        sum_over.insert(sum_over.end(), ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shards));
      }
      stage.sum_over = std::move(sum_over);
      for (int& member : stage.members) member = nodes[static_cast<std::size_t>(member)][place];
      for (auto& leaf : stage.leaf_offsets) leaf = first_leaf[leaf];
      const auto shift = [&](index_range range) {
        return index_range{shard.begin + std::min(range.begin, shard.size()),
                           shard.begin + std::min(range.end, shard.size())};
      };
      stage.held = shift(stage.held);
      for (auto& part : stage.parts) part = shift(part);
      stages.push_back(std::move(stage));
    }
    return stages;
  }

  /// In a plan's own buffer, ranks of one node that share memory work there in place.
  static shared_memory_use uses_shared_memory(int, const schedule_input&) { return shared_memory_use::buffer; }

  /// Which rank's gradient is which leaf.
  std::vector<int> leaf_ranks(int size) const {
    std::vector<int> ranks;
    for (const auto& node : ranks_by_node(size)) ranks.insert(ranks.end(), node.begin(), node.end());
    return ranks;
  }

 private:
  std::vector<std::vector<int>> ranks_by_node(int size) const {
    if (node_of_rank.size() != static_cast<std::size_t>(size))
      throw bad_input("adasum::schedules::hierarchical: nodes are given for " + std::to_string(node_of_rank.size()) +
                      " ranks, the communicator has " + std::to_string(size));
    std::vector<int> seen;
    std::vector<std::vector<int>> nodes;
    for (int rank = 0; rank < size; ++rank) {
      const int node = node_of_rank[static_cast<std::size_t>(rank)];
      const auto at = static_cast<std::size_t>(std::ranges::find(seen, node) - seen.begin());
      if (at == seen.size()) {
        seen.push_back(node);
        nodes.emplace_back();
      }
      nodes[at].push_back(rank);
    }
    return nodes;
  }

  static std::pair<std::size_t, std::size_t> find(const std::vector<std::vector<int>>& nodes, int rank) {
    for (std::size_t node = 0;; ++node) {
      const auto at = std::ranges::find(nodes[node], rank);
      if (at != nodes[node].end()) return {node, static_cast<std::size_t>(at - nodes[node].begin())};
    }
  }
};

template <rule Inner>
hierarchical(std::vector<int>, Inner) -> hierarchical<Inner>;
template <rule Inner, schedule Outer>
hierarchical(std::vector<int>, Inner, Outer) -> hierarchical<Inner, Outer>;

}  // namespace adasum::schedules
