// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/node_groups.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace test_of_core_node_groups {

namespace {

std::vector<std::vector<int>> written_out(const std::vector<int>& node_of_rank) {
  const adasum::node_groups groups(node_of_rank);
  std::vector<std::vector<int>> all;
  for (std::size_t node = 0; node < groups.size(); ++node) {
    const auto ranks = groups.ranks(node);
    all.emplace_back(ranks.begin(), ranks.end());
  }
  return all;
}

using nested = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("nodes in the order of their lowest ranks, whatever their numbers") {
  CHECK(written_out({0, 0, 1, 1}) == nested{{0, 1}, {2, 3}});
  CHECK(written_out({7, 7, -2, -2, -2}) == nested{{0, 1}, {2, 3, 4}});
  CHECK(written_out({1, 0, 1, 0, 5}) == nested{{0, 2}, {1, 3}, {4}});
  CHECK(written_out({3}) == nested{{0}});
}

TEST_CASE("where a rank is, and which leaf its gradient is") {
  const std::vector<int> node_of_rank{2, 1, 2, 1, 1, 0};
  const adasum::node_groups groups(node_of_rank);
  CHECK(groups.smallest() == 1);
  const adasum::node_leaves leaves(groups), others(groups, std::vector{2, 0, 1});
  CHECK(leaves.ranks() == std::vector{0, 2, 1, 3, 4, 5});
  CHECK(others.ranks() == std::vector{5, 0, 2, 1, 3, 4});
  for (const auto& all : {leaves, others}) {
    for (int rank = 0; rank < 6; ++rank) {
      const auto [node, place] = groups.find(rank);
      CHECK(groups.ranks(node)[place] == rank);
      CHECK(all.ranks()[all.of_node(node) + place] == rank);
    }
    CHECK(all.at(groups.size()) == 6);
  }
  CHECK(others.at(1) == 1);  // of node 0
}

}  // namespace test_of_core_node_groups
