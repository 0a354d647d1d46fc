// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "segments.hpp"

/// The tree that defines "the combination of n gradients" for a pairwise rule. Pairwise rules such as Adasum are not
/// associative, so the tree is part of the definition. adasum_tree computes this one, and so does every schedule but those
/// that follow nodes: schedules::automatic over several nodes with several ranks each, and schedules::hierarchical, compute
/// it inside each node and then over the nodes (node_groups.hpp).
///
/// It has one level for each prime factor of n, in ascending order: 12 = 2 · 2 · 3. At a level with the factor p, every
/// p consecutive vectors become one, along the tree of p vectors (leaf_folding). So any number of consecutive levels is
/// the tree of as many vectors as the product of their factors, and ranks can exchange their data level by level.
namespace adasum {

namespace detail {

/// The tree of p vectors, p being prime or a power of two: with the largest power of two 2^k <= p, the first 2·(p - 2^k)
/// vectors are paired, (0, 1), (2, 3), …; each of the others is a node by itself. A perfect binary tree combines the 2^k
/// nodes.
struct leaf_folding {
  std::size_t nodes;   ///< 2^k
  std::size_t folded;  ///< p - 2^k, how many nodes hold two vectors

  /// @pre leaves >= 1
  ADASUM_HOST_DEVICE static constexpr leaf_folding of(std::size_t leaves) {
    std::size_t nodes = 1;
    while (nodes <= leaves / 2) nodes *= 2;
    return {nodes, leaves - nodes};
  }
  /// The first vector of a node; first_leaf(nodes) is the number of vectors.
  ADASUM_HOST_DEVICE constexpr std::size_t first_leaf(std::size_t node) const {
    return node < folded ? 2 * node : node + folded;
  }
  /// The node that holds a vector.
  ADASUM_HOST_DEVICE constexpr std::size_t node_of(std::size_t leaf) const {
    return leaf < 2 * folded ? leaf / 2 : leaf - folded;
  }
};

/// The smallest prime factor of a number that has none below `least`. @pre number >= 2, least >= 2
ADASUM_HOST_DEVICE constexpr std::size_t smallest_factor(std::size_t number, std::size_t least = 2) {
  for (auto factor = least; factor <= number / factor; ++factor)
    if (number % factor == 0) return factor;
  return number;
}

}  // namespace detail

/// Calls visit(first, middle, last) for every inner node of the tree over the given number of leaves, children before
/// parents: the node combines the leaves [first, middle) with the leaves [middle, last).
ADASUM_CALLS_ITS_ARGUMENT template <class Visitor>
ADASUM_HOST_DEVICE constexpr void for_each_merge(std::size_t leaves, Visitor&& visit) {
  for (std::size_t span = 1, factor = 1, prime = 3; span < leaves; span *= factor) {
    const auto rest = leaves / span;
    factor = rest & (~rest + 1);  // all factors of 2 at once, which is a perfect tree
    if (factor == 1) factor = prime = detail::smallest_factor(rest, prime);
    const auto folding = detail::leaf_folding::of(factor);
    for (std::size_t group = 0; group < leaves; group += factor * span) {
      const auto at = [&](std::size_t node) { return group + folding.first_leaf(node) * span; };
      for (std::size_t node = 0; node < folding.folded; ++node) visit(at(node), at(node) + span, at(node) + 2 * span);
      for (std::size_t width = 1; width < folding.nodes; width *= 2)
        for (std::size_t node = 0; node < folding.nodes; node += 2 * width)
          visit(at(node), at(node + width), at(node + 2 * width));
    }
  }
}

/// The same for the linear order: ((0, 1), 2), 3 …
ADASUM_CALLS_ITS_ARGUMENT template <class Visitor>
ADASUM_HOST_DEVICE constexpr void for_each_left_fold(std::size_t leaves, Visitor&& visit) {
  for (std::size_t leaf = 1; leaf < leaves; ++leaf) visit(std::size_t{0}, leaf, leaf + 1);
}

}  // namespace adasum

namespace adasum::detail {

/// The tree of n vectors in two parts: its largest subtrees of at most so many leaves each, the groups, and
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
      groups_.push_back({{first, end_of[first]}, {}});
    }
    group_of[leaves] = size();
    for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
      if (last - first > most) {
        above_.push_back({group_of[first], group_of[middle], group_of[last]});
        return;
      }
      auto& [all, within] = groups_[group_of[first]];
      within.push_back({first - all.begin, middle - all.begin, last - all.begin});
    });
  }

  std::size_t size() const { return groups_.size(); }
  index_range leaves(std::size_t group) const { return groups_[group].leaves; }
  /// The nodes of a group, children before parents; leaves are counted from its first one.
  std::span<const merge> within(std::size_t group) const { return groups_[group].within; }
  /// Those above; groups are counted as leaves.
  std::span<const merge> above() const { return above_; }

  std::size_t largest() const {
    std::size_t most = 0;
    for (const auto& group : groups_) most = group.leaves.size() > most ? group.leaves.size() : most;
    return most;
  }

 private:
  struct group_of_leaves {
    index_range leaves;
    std::vector<merge> within;
  };
  std::vector<group_of_leaves> groups_;
  std::vector<merge> above_;
};

}  // namespace adasum::detail
