// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include "segments.hpp"
#include "tree_order.hpp"

namespace adasum::detail {

/// The tree of n vectors (tree_order.hpp) in two parts: its largest subtrees of at most so many leaves each, the groups, and
/// what combines their results. 32 vectors in groups of 8:
///
///     0 … 7    8 … 15    16 … 23    24 … 31      groups: subtrees of the tree
///        └───┬────┘          └────┬────┘         above: the rest of it, whose leaves are the groups
///            └─────────┬──────────┘
class tree_groups {
 public:
  /// The node of [first, last), which combines [first, middle) with [middle, last).
  struct merge {
    std::size_t first, middle, last;
  };

  /// @pre leaves >= 1, most >= 1
  tree_groups(std::size_t leaves, std::size_t most) {
    std::vector<std::size_t> end_of(leaves);  // of the largest subtree so far that begins at a leaf
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) end_of[leaf] = leaf + 1;
    for_each_merge(leaves, [&](std::size_t first, std::size_t, std::size_t last) {
      if (last - first <= most) end_of[first] = last;
    });
    std::vector<std::size_t> group_of(leaves + 1);
    for (std::size_t leaf = 0; leaf < leaves; leaf = end_of[leaf]) {
      group_of[leaf] = groups_.size();
      groups_.push_back({{leaf, end_of[leaf]}, {}});
    }
    group_of[leaves] = groups_.size();
    for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
      if (last - first > most) {
        above_.push_back({group_of[first], group_of[middle], group_of[last]});
        return;
      }
      // Its first leaf may lie in the middle of the group.
      auto& group =
          *std::prev(std::ranges::upper_bound(groups_, first, {}, [](const auto& g) { return g.leaves.begin; }));
      const auto from = group.leaves.begin;
      group.merges.push_back({first - from, middle - from, last - from});
    });
  }

  std::size_t size() const { return groups_.size(); }
  index_range leaves(std::size_t group) const { return groups_[group].leaves; }
  /// The nodes of a group, children before parents; leaves are counted from its first one.
  std::span<const merge> within(std::size_t group) const { return groups_[group].merges; }
  /// Those above; groups are counted as leaves.
  std::span<const merge> above() const { return above_; }

  std::size_t largest() const {
    std::size_t most = 0;
    for (const auto& group : groups_) most = std::max(most, group.leaves.size());
    return most;
  }

 private:
  struct subtree {
    index_range leaves;
    std::vector<merge> merges;
  };
  std::vector<subtree> groups_;
  std::vector<merge> above_;
};

}  // namespace adasum::detail
