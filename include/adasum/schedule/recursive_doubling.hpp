// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "levels.hpp"

namespace adasum::schedules {

/// At each level of the tree, of radix p, p ranks exchange whole vectors, and each combines all of them. For short vectors:
/// one exchange for each prime factor p of the number of ranks, and no sums over ranks, but each rank sends Σ(p-1)·N
/// elements, and receives as many as (p-1)·N at once. Where p is a prime above 7, some ranks are folded first (levels.hpp).
struct recursive_doubling {
  static constexpr std::string_view name = "recursive_doubling";
  static constexpr bool supports_gram_rules = false;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    return detail::level_walk(rank, size, 2, {0, input.length}, detail::exchanged::whole).stages();
  }
};

}  // namespace adasum::schedules
