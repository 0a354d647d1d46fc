// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace adasum::test {

/// Nodes of so many ranks each, one after the other.
inline std::vector<int> nodes_of(std::initializer_list<int> ranks) {
  std::vector<int> nodes;
  int node = 0;
  for (const int each : ranks) nodes.insert(nodes.end(), static_cast<std::size_t>(each), node++);
  return nodes;
}
/// So many ranks dealt out to two nodes in turn.
inline std::vector<int> in_turn(int ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank % 2);
  return nodes;
}

/// The node of each rank: even, odd and unequal nodes, interleaved ones, one node, nodes of one rank.
inline const std::vector<std::vector<int>> arrangements{
    {0, 0, 1, 1}, {0, 0, 0, 1, 1},       {0, 1, 0, 1, 2},          {3, 3, 3},
    {0, 1, 2},    {2, 2, 1, 1, 1, 7, 7}, {0, 1, 1, 0, 0, 1, 1, 0}, {4},
};

/// Nodes of more ranks than take one stage: even and unequal ones, with one rank on some node, and interleaved.
inline const std::vector<std::vector<int>> large_arrangements{
    nodes_of({16, 16}), nodes_of({16, 10}), nodes_of({9, 1}), nodes_of({5, 27, 11}), in_turn(20),
#ifndef ADASUM_TEST_SANITIZED  // which makes each of them ten times as slow
    nodes_of({12, 12, 12}), nodes_of({24, 24}), nodes_of({48, 48}),
#endif
};

}  // namespace adasum::test
