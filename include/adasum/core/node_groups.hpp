// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace adasum {

/// Ranks by nodes. The nodes are ordered by their lowest ranks, and the ranks of a node ascend.
class node_groups {
 public:
  /// @param node_of_rank  any numbers, equal for ranks of one node; at least one
  explicit node_groups(std::span<const int> node_of_rank) {
    std::map<int, int> lowest;  // rank of each node
    std::vector<int> lowest_beside;
    for (const int node : node_of_rank)
      lowest_beside.push_back(lowest.try_emplace(node, static_cast<int>(lowest_beside.size())).first->second);
    ranks_.resize(node_of_rank.size());
    std::iota(ranks_.begin(), ranks_.end(), 0);
    const auto of = [&](int rank) { return lowest_beside[static_cast<std::size_t>(rank)]; };
    std::ranges::stable_sort(ranks_, {}, of);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (of(ranks_[i]) == ranks_[i]) offsets_.push_back(i);
    offsets_.push_back(ranks_.size());
  }

  /// How many nodes there are.
  std::size_t size() const { return offsets_.size() - 1; }
  /// The ranks of a node.
  std::span<const int> ranks(std::size_t node) const {
    return std::span(ranks_).subspan(offsets_[node], offsets_[node + 1] - offsets_[node]);
  }
  /// The first of the nodes that have the most ranks.
  std::size_t largest() const {
    std::size_t found = 0;
    for (std::size_t node = 1; node < size(); ++node)
      if (ranks(node).size() > ranks(found).size()) found = node;
    return found;
  }
  /// How many ranks the smallest node has.
  std::size_t smallest() const {
    std::size_t least = ranks(0).size();
    for (std::size_t node = 1; node < size(); ++node) least = std::min(least, ranks(node).size());
    return least;
  }

  /// Where a rank is.
  struct position {
    std::size_t node;   ///< on which node
    std::size_t place;  ///< among the ranks of that node
  };
  /// Where this rank is. @pre there is such a rank
  position find(int rank) const {
    for (std::size_t node = 0;; ++node) {
      const auto all = ranks(node);
      const auto at = std::ranges::lower_bound(all, rank);
      if (at != all.end() && *at == rank) return {node, static_cast<std::size_t>(at - all.begin())};
    }
  }

  /// All of them, node by node.
  std::span<const int> ranks() const { return ranks_; }

 private:
  std::vector<int> ranks_;
  std::vector<std::size_t> offsets_;
};

/// Which rank's gradient is which leaf of the tree (tree_order.hpp), where those of a node follow each other.
class node_leaves {
 public:
  /// @param order  which node is which leaf of a schedule across the nodes; empty: in the order of the groups
  explicit node_leaves(const node_groups& groups, std::span<const int> order = {})
      : groups_(groups), node_at_(groups.size()), offsets_{0} {
    std::iota(node_at_.begin(), node_at_.end(), std::size_t{0});
    std::ranges::copy(order, node_at_.begin());
    for (const auto node : node_at_) offsets_.push_back(offsets_.back() + groups.ranks(node).size());
  }

  /// The nodes and their ranks.
  const node_groups& groups() const { return groups_; }
  /// The first leaf of the node that is at this place among the nodes; at(groups().size()) is the number of ranks.
  std::size_t at(std::size_t place) const { return offsets_[place]; }
  /// The first leaf of a node.
  std::size_t of_node(std::size_t node) const {
    return at(static_cast<std::size_t>(std::ranges::find(node_at_, node) - node_at_.begin()));
  }
  /// Leaf by leaf.
  std::vector<int> ranks() const {
    std::vector<int> all;
    for (const auto node : node_at_) {
      const auto some = groups_.ranks(node);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

 private:
  node_groups groups_;
  std::vector<std::size_t> node_at_;
  std::vector<std::size_t> offsets_;  // leaves before each place
};

}  // namespace adasum
