// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"

namespace adasum::schedules {

/// At each level of the tree, of radix p, p ranks exchange whole vectors, and each combines all of them. For short vectors:
/// one exchange for each prime factor p of the number of ranks, and no sums over ranks, but each rank sends Σ(p-1)·N
/// elements, and receives as many as (p-1)·N at once. Where p is a prime above 7, some ranks are folded first (levels.hpp).
///
/// For very short vectors, a wider radix: {.radix = 4} takes half as many exchanges of three messages each. Its levels are
/// those of recursive_halving.
struct recursive_doubling {
  static constexpr std::string_view name = "recursive_doubling";
  static constexpr bool supports_gram_rules = false;

  /// At least 2; a level may have a smaller one, or be a single prime factor that is larger.
  std::size_t radix = 2;
  friend constexpr bool operator==(const recursive_doubling&, const recursive_doubling&) = default;

  /// @throws bad_input if the radix is less than 2
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;
};

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include "levels.hpp"

namespace adasum::schedules {

ADASUM_INLINE std::vector<stage> recursive_doubling::stages(int rank, int size, const schedule_input& input) const {
  detail::require_radix(radix, "recursive_doubling");
  return detail::stages_by_levels(rank, size, input.length, radix, 1);
}

}  // namespace adasum::schedules
#endif
