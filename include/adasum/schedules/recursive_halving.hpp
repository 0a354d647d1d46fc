// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "partition.hpp"

namespace adasum::schedules {

/// Recursive vector halving, distance doubling (Maleki et al., MLSys 2021, section 4, AdasumRVH), for any number of ranks
/// and any radix.
///
/// At each level, q ranks cut the elements that they hold into q parts and exchange them all to all. Each combines one
/// part, and goes on with it. The partial inner products are summed over all ranks that hold parts of the same vectors: for
/// each level, one sum of q·(q + 1)/2 numbers for each segment. Afterwards the stages are walked back to gather the result.
/// Each q is a product of prime factors of the number of ranks, as large as the radix allows: {.radix = 4} among 24 ranks
/// makes levels of 4, 2 and 3.
///
/// For long vectors: each rank sends 2(P-1)/P·N elements at any radix, in 2 exchanges for each level; arithmetic per
/// element grows with the radix. Where the number of ranks has a prime factor above 7 and above the radix, some ranks are
/// folded first at its level (levels.hpp).
///
/// For vectors of medium length among many ranks, {.most_parts = m}: halving at the first levels, doubling above. Once
/// vectors have been cut into m parts, the ranks that meet exchange their parts whole, and each combines all of what they
/// hold. So a level of radix q takes one exchange of (q-1)·N/m elements in place of two of fewer elements, and its inner
/// products are summed over m ranks only, those that hold the parts of one vector.
struct recursive_halving {
  static constexpr std::string_view name = "recursive_halving";
  static constexpr bool supports_gram_rules = false;

  /// At least 2; a level may have a smaller one, or be a single prime factor that is larger.
  std::size_t radix = 2;
  /// Into how many parts a vector is cut at most. A level that would make more of them cuts nothing, nor do those above it.
  std::size_t most_parts = detail::any_number_of_parts;
  friend constexpr bool operator==(const recursive_halving&, const recursive_halving&) = default;

  /// @throws bad_input if the radix is less than 2, or there is to be no part
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const;
};

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS
#include "../core/error.hpp"
#include "levels.hpp"

namespace adasum::schedules {

ADASUM_INLINE std::vector<stage> recursive_halving::stages(int rank, int size, const schedule_input& input) const {
  detail::require_radix(radix, "recursive_halving");
  if (most_parts < 1) throw bad_input("adasum::schedules::recursive_halving: most_parts is 0; it must be at least 1");
  return detail::stages_by_levels(rank, size, input.length, radix, most_parts);
}

}  // namespace adasum::schedules
#endif
