// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"

namespace adasum::schedules {

/// A single stage for any number of ranks and any rule: each rank gets its slice of all P gradients, the P×P Gram
/// matrices of the slices are summed over the ranks, every rank computes the same weights and mixes its slice, and the
/// slices are gathered. Each rank sends 2(P-1)/P·N elements in 2 exchanges; arithmetic per element grows with P.
struct all_to_all {
  static constexpr std::string_view name = "all_to_all";
  static constexpr bool supports_gram_rules = true;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;
};

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include "levels.hpp"

namespace adasum::schedules {

ADASUM_INLINE std::vector<stage> all_to_all::stages(int rank, int size, const schedule_input& input) const {
  return detail::stages_by_levels(rank, size, input.length, detail::one_level);
}

}  // namespace adasum::schedules
#endif
