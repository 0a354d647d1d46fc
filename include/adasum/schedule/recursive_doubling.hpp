// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/stage.hpp"
#include "folding.hpp"

namespace adasum::schedules {

/// At distance 1, 2, 4, … two ranks exchange whole vectors, and both combine them. For short vectors: log₂P exchanges and
/// no sums over ranks, but each rank sends log₂P·N elements. If P is not a power of two, some ranks are folded first.
struct recursive_doubling {
  static constexpr std::string_view name = "recursive_doubling";
  static constexpr bool supports_gram_rules = false;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    const index_range all{0, input.length};
    auto stages = detail::fold(rank, size, all);
    if (!detail::goes_on(stages)) return stages;
    const detail::subtree_numbering subtrees(size);
    const auto self = subtrees.subtree_of(rank);
    for (std::size_t distance = 1; distance < subtrees.count(); distance *= 2) {
      auto stage = subtrees.meet(self, distance, 2);
      stage.held = all;
      stage.parts = {all, all};
      stage.sum_over = {rank};
      stages.push_back(std::move(stage));
    }
    return stages;
  }
};

}  // namespace adasum::schedules
