// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "partition.hpp"

namespace adasum::schedules {

/// A single level for any number of ranks and any rule: each rank gets its slice of all P gradients, the P×P Gram
/// matrices of the slices are summed over the ranks, every rank computes the same weights and mixes its slice, and the
/// slices are gathered. Each rank sends 2(P-1)/P·N elements in 2 exchanges; arithmetic per element grows with P.
struct all_to_all {
  static constexpr std::string_view name = "all_to_all";
  static constexpr bool supports_gram_rules = true;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    const auto count = static_cast<std::size_t>(size);
    stage level;
    level.self = static_cast<std::size_t>(rank);
    level.survivors = count;
    level.held = {0, input.length};
    level.members.resize(count);
    std::iota(level.members.begin(), level.members.end(), 0);
    level.leaf_offsets.resize(count + 1);
    std::iota(level.leaf_offsets.begin(), level.leaf_offsets.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) level.parts.push_back(detail::part_of(level.held, count, i));
    level.sum_over = level.members;
    return {level};
  }
};

}  // namespace adasum::schedules
