// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "folding.hpp"

namespace adasum::schedules {

/// At distance 1, 2, 4, … two ranks exchange whole vectors, and both combine them. For short vectors: log₂P exchanges,
/// no sums over ranks; log₂P·N elements sent by each rank. With P not a power of two, some ranks are folded first.
struct recursive_doubling {
  static constexpr std::string_view name = "recursive_doubling";
  static constexpr bool all_at_once = false;

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    const index_range all{0, what.length};
    auto levels = fold(rank, size, all);
    if (!takes_part(levels)) return levels;
    const node_numbering nodes(size);
    const auto self = nodes.node_of(rank);
    for (std::size_t distance = 1; distance < nodes.count(); distance *= 2) {
      auto level = nodes.meet(self, distance, 2);
      level.held = all;
      level.parts = {all, all};
      level.sum_over = {rank};
      levels.push_back(std::move(level));
    }
    return levels;
  }
};

}  // namespace adasum::schedules
