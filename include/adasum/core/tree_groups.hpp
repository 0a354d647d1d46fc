// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
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
    for (std::size_t first = 0; first < leaves; first = end_of[first]) {
      for (auto leaf = first; leaf < end_of[first]; ++leaf) group_of[leaf] = size();
      groups_.push_back({first, end_of[first]});
    }
    group_of[leaves] = size();
    within_.resize(leaves - size());
    std::vector<std::size_t> next(size());  // how many of a group's nodes are there
    for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
      if (last - first > most) {
        above_.push_back({group_of[first], group_of[middle], group_of[last]});
        return;
      }
      const auto group = group_of[first];
      const auto from = groups_[group].begin;
      within_[before(group) + next[group]++] = {first - from, middle - from, last - from};
    });
  }

  std::size_t size() const { return groups_.size(); }
  index_range leaves(std::size_t group) const { return groups_[group]; }
  /// The nodes of a group, children before parents; leaves are counted from its first one.
  std::span<const merge> within(std::size_t group) const {
    return {within_.data() + before(group), groups_[group].size() - 1};
  }
  /// Those above; groups are counted as leaves.
  std::span<const merge> above() const { return {above_.data(), above_.size()}; }

  std::size_t largest() const {
    std::size_t most = 0;
    for (const auto group : groups_) most = group.size() > most ? group.size() : most;
    return most;
  }

 private:
  /// How many nodes the groups before this one have: each has one node less than leaves.
  std::size_t before(std::size_t group) const { return groups_[group].begin - group; }

  std::vector<index_range> groups_;
  std::vector<merge> within_, above_;
};

}  // namespace adasum::detail
