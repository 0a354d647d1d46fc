// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <vector>

#include "splitting.hpp"

namespace adasum::schedules {

/// Recursive vector halving, distance doubling: splitting of radix 2 (AdasumRVH). For long vectors: each rank sends
/// 2(P-1)/P·N elements in 2 log₂P exchanges, and log₂P sums over ranks of three numbers for each segment.
struct recursive_halving {
  static constexpr std::string_view name = "recursive_halving";
  static constexpr bool all_at_once = false;

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    return splitting{2}.stages(rank, size, what);
  }
};

}  // namespace adasum::schedules
