// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

namespace adasum::test {

/// The node of each rank: even, odd and unequal nodes, interleaved ones, one node, nodes of one rank.
inline const std::vector<std::vector<int>> arrangements{
    {0, 0, 1, 1}, {0, 0, 0, 1, 1},       {0, 1, 0, 1, 2},          {3, 3, 3},
    {0, 1, 2},    {2, 2, 1, 1, 1, 7, 7}, {0, 1, 1, 0, 0, 1, 1, 0}, {4},
};

}  // namespace adasum::test
