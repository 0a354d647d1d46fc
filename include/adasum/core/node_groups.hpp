// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace adasum {

/// Ranks by nodes. The nodes are ordered by their lowest ranks, and the ranks of a node ascend.
class node_groups {
 public:
  /// @param node_of_rank  any numbers, equal for ranks of one node; at least one
  explicit node_groups(std::span<const int> node_of_rank);

  /// How many nodes there are.
  std::size_t size() const { return offsets_.size() - 1; }
  /// The ranks of a node.
  std::span<const int> ranks(std::size_t node) const {
    return {ranks_.data() + offsets_[node], offsets_[node + 1] - offsets_[node]};
  }
  /// The first of the nodes that have the most ranks.
  std::size_t largest() const;
  /// How many ranks the smallest node has.
  std::size_t smallest() const;

  /// Where a rank is.
  struct position {
    std::size_t node;   ///< on which node
    std::size_t place;  ///< among the ranks of that node
  };
  /// Where this rank is. @pre there is such a rank
  position find(int rank) const;

  /// All of them, node by node.
  std::span<const int> ranks() const { return {ranks_.data(), ranks_.size()}; }

 private:
  std::vector<int> ranks_;
  std::vector<std::size_t> offsets_;
};

/// Which rank's gradient is which leaf of the tree (tree_order.hpp), where those of a node follow each other.
class node_leaves {
 public:
  /// @param order  which node is which leaf of a schedule across the nodes; empty: in the order of the groups
  explicit node_leaves(node_groups groups, std::span<const int> order = {});

  /// The nodes and their ranks.
  const node_groups& groups() const { return groups_; }
  /// The first leaf of the node that is at this place among the nodes; at(groups().size()) is the number of ranks.
  std::size_t at(std::size_t place) const { return offsets_[place]; }
  /// The first leaf of a node.
  std::size_t of_node(std::size_t node) const { return leaf_of_node_[node]; }
  /// Leaf by leaf.
  const std::vector<int>& ranks() const { return ranks_; }

 private:
  node_groups groups_;
  std::vector<std::size_t> offsets_;  // leaves before each place
  std::vector<std::size_t> leaf_of_node_;
  std::vector<int> ranks_;  // leaf by leaf
};

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <utility>

namespace adasum {

ADASUM_INLINE node_groups::node_groups(std::span<const int> node_of_rank) : ranks_(node_of_rank.size()) {
  std::vector<std::size_t> node_at(ranks_.size());  // of each rank
  std::vector<int> numbers(ranks_.size());          // of the nodes, as they are given
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    // Compared first with the last rank's node, and then with the one behind it: mostly it is one of these two.
    auto node = rank > 0 ? node_at[rank - 1] : 0;
    std::size_t compared = 0;
    for (; compared < offsets_.size() && numbers[node] != node_of_rank[rank]; ++compared)
      if (++node == offsets_.size()) node = 0;
    if (compared == offsets_.size()) {
      node = offsets_.size();
      numbers[node] = node_of_rank[rank];
      offsets_.push_back(0);
    }
    node_at[rank] = node;
    ++offsets_[node];  // how many ranks it has; below, where they begin
  }
  std::size_t begin = 0;
  for (auto& offset : offsets_) {
    const auto count = offset;
    offset = begin;
    begin += count;
  }
  auto next = offsets_;  // where each node's next rank goes
  offsets_.push_back(begin);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[next[node_at[rank]]++] = static_cast<int>(rank);
}

ADASUM_INLINE std::size_t node_groups::largest() const {
  std::size_t found = 0;
  for (std::size_t node = 1; node < size(); ++node)
    if (ranks(node).size() > ranks(found).size()) found = node;
  return found;
}

ADASUM_INLINE std::size_t node_groups::smallest() const {
  std::size_t least = ranks(0).size();
  for (std::size_t node = 1; node < size(); ++node)
    if (ranks(node).size() < least) least = ranks(node).size();
  return least;
}

ADASUM_INLINE node_groups::position node_groups::find(int rank) const {
  std::size_t at = 0, node = 0;
  while (ranks_[at] != rank) ++at;
  while (offsets_[node + 1] <= at) ++node;
  return {node, at - offsets_[node]};
}

ADASUM_INLINE node_leaves::node_leaves(node_groups groups, std::span<const int> order)
    : groups_(std::move(groups)),
      offsets_(groups_.size() + 1),
      leaf_of_node_(groups_.size()),
      ranks_(groups_.ranks().size()) {
  std::size_t leaf = 0;
  for (std::size_t place = 0; place < groups_.size(); ++place) {
    const auto node = order.empty() ? place : static_cast<std::size_t>(order[place]);
    leaf_of_node_[node] = offsets_[place] = leaf;
    for (const int rank : groups_.ranks(node)) ranks_[leaf++] = rank;
  }
  offsets_.back() = leaf;
}

}  // namespace adasum
#endif
