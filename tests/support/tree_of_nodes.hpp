// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <adasum/core/node_groups.hpp>

#include "oracle.hpp"

namespace adasum::test {

/// First the gradients of each node, then those of the nodes, as schedules::automatic combines them.
struct tree_of_nodes {
  std::vector<int> nodes;
  template <class Merge>
  oracle_node operator()(std::vector<oracle_node> leaves, const Merge& merge) const {
    if (nodes.empty()) return oracle_tree(std::move(leaves), merge);
    const node_groups groups(nodes);
    std::vector<oracle_node> of_nodes;
    for (std::size_t node = 0; node < groups.size(); ++node) {
      std::vector<oracle_node> inside;
      for (const int rank : groups.ranks(node)) inside.push_back(leaves[static_cast<std::size_t>(rank)]);
      of_nodes.push_back(oracle_tree(std::move(inside), merge));
    }
    return oracle_tree(std::move(of_nodes), merge);
  }
};

}  // namespace adasum::test
