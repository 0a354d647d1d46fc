// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>

/// The tree that defines "the combination of n gradients" for a pairwise rule. Pairwise rules such as Adasum are not
/// associative, so the tree is part of the definition. adasum_tree computes this one, and so does every schedule but those
/// that follow nodes: schedules::automatic over several nodes with several ranks each, and schedules::hierarchical, compute
/// it inside each node and then over the nodes (node_groups.hpp).
namespace adasum {

namespace detail {

/// How n leaves become the 2^k nodes of a perfect binary tree, 2^k being the largest power of two <= n: the first
/// 2·(n - 2^k) leaves are paired, (0, 1), (2, 3), …; each of the others is a node by itself.
struct leaf_folding {
  std::size_t nodes;   ///< 2^k
  std::size_t folded;  ///< n - 2^k, how many nodes hold two leaves

  /// @pre leaves >= 1
  ADASUM_HOST_DEVICE static constexpr leaf_folding of(std::size_t leaves) {
    std::size_t nodes = 1;
    while (nodes <= leaves / 2) nodes *= 2;
    return {nodes, leaves - nodes};
  }
  /// The first leaf of a node; first_leaf(nodes) is the number of leaves.
  ADASUM_HOST_DEVICE constexpr std::size_t first_leaf(std::size_t node) const {
    return node < folded ? 2 * node : node + folded;
  }
  /// The node that holds a leaf.
  ADASUM_HOST_DEVICE constexpr std::size_t node_of(std::size_t leaf) const {
    return leaf < 2 * folded ? leaf / 2 : leaf - folded;
  }
};

}  // namespace detail

/// Calls visit(first, middle, last) for every inner node of the tree over the given number of leaves, children before
/// parents: the node combines the leaves [first, middle) with the leaves [middle, last).
ADASUM_CALLS_ITS_ARGUMENT template <class Visitor>
ADASUM_HOST_DEVICE constexpr void for_each_merge(std::size_t leaves, Visitor&& visit) {
  if (leaves < 2) return;
  const auto folding = detail::leaf_folding::of(leaves);
  for (std::size_t node = 0; node < folding.folded; ++node) {
    const auto first = folding.first_leaf(node);
    visit(first, first + 1, first + 2);
  }
  for (std::size_t width = 1; width < folding.nodes; width *= 2)
    for (std::size_t node = 0; node < folding.nodes; node += 2 * width)
      visit(folding.first_leaf(node), folding.first_leaf(node + width), folding.first_leaf(node + 2 * width));
}

/// The same for the linear order: ((0, 1), 2), 3 …
ADASUM_CALLS_ITS_ARGUMENT template <class Visitor>
ADASUM_HOST_DEVICE constexpr void for_each_left_fold(std::size_t leaves, Visitor&& visit) {
  for (std::size_t leaf = 1; leaf < leaves; ++leaf) visit(std::size_t{0}, leaf, leaf + 1);
}

}  // namespace adasum
