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

/// A single stage for any number of ranks and any rule: each rank gets its slice of all P gradients, the P×P Gram
/// matrices of the slices are summed over the ranks, every rank computes the same weights and mixes its slice, and the
/// slices are gathered. Each rank sends 2(P-1)/P·N elements in 2 exchanges; arithmetic per element grows with P.
struct all_to_all {
  static constexpr std::string_view name = "all_to_all";
  static constexpr bool supports_gram_rules = true;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    const auto count = static_cast<std::size_t>(size);
    stage one;
    one.self = static_cast<std::size_t>(rank);
    one.survivors = count;
    one.held = {0, input.length};
    one.members.resize(count);
    std::iota(one.members.begin(), one.members.end(), 0);
    one.leaf_offsets.resize(count + 1);
    std::iota(one.leaf_offsets.begin(), one.leaf_offsets.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) one.parts.push_back(detail::part_of(one.held, count, i));
    one.sum_over = one.members;
    return {one};
  }
};

}  // namespace adasum::schedules
