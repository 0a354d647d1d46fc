// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "splitting.hpp"

namespace adasum::schedules {

/// One exchange for any number of ranks and any rule: each rank gets its slice of all P gradients, the P×P Gram
/// matrices of the slices are summed over the ranks, every rank weighs alike and mixes its slice, and the slices are
/// gathered. Each rank sends 2(P-1)/P·N elements in 2 exchanges; arithmetic per element grows with P.
struct gram {
  static constexpr std::string_view name = "gram";
  static constexpr bool all_at_once = true;

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    const auto count = static_cast<std::size_t>(size);
    stage level;
    level.self = static_cast<std::size_t>(rank);
    level.survivors = count;
    level.held = {0, what.length};
    level.members.resize(count);
    std::iota(level.members.begin(), level.members.end(), 0);
    level.leaves.resize(count + 1);
    std::iota(level.leaves.begin(), level.leaves.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) level.parts.push_back(part_of(level.held, count, i));
    level.sum_over = level.members;
    return {level};
  }
};

}  // namespace adasum::schedules
