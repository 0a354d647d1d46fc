// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "folding.hpp"
#include "partition.hpp"

namespace adasum::schedules {

/// Recursive vector halving, distance doubling (Maleki et al., MLSys 2021, section 4, AdasumRVH), for any radix that is a power of two.
///
/// At each stage, `radix` ranks cut the elements that they hold into `radix` parts and exchange them all to all. Each
/// combines one part, and goes on with it. The partial inner products are summed over all ranks that hold parts of the
/// same vectors: log_radix P sums of radix·(radix + 1)/2 numbers for each segment. Afterwards the stages are walked
/// back to gather the result.
///
/// For long vectors: each rank sends 2(P-1)/P·N elements at any radix, in 2 log_radix P exchanges; arithmetic per
/// element grows with the radix. If P is not a power of two, some ranks are folded first.
struct recursive_halving {
  static constexpr std::string_view name = "recursive_halving";
  static constexpr bool supports_gram_rules = false;

  /// A power of two, at least 2; stages at the end may have a smaller one.
  std::size_t radix = 2;
  friend constexpr bool operator==(const recursive_halving&, const recursive_halving&) = default;

  /// @throws bad_input if the radix is not a power of two of at least 2
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (radix < 2 || !std::has_single_bit(radix))
      throw bad_input("adasum::schedules::recursive_halving: the radix " + std::to_string(radix) +
                      " is not a power of two of at least 2");
    index_range held{0, input.length};
    auto stages = detail::fold(rank, size, held);
    if (!detail::goes_on(stages)) return stages;
    const detail::subtree_numbering subtrees(size);
    const auto self = subtrees.subtree_of(rank);
    for (std::size_t distance = 1; distance < subtrees.count();) {
      const auto members = std::min(radix, subtrees.count() / distance);
      auto stage = subtrees.meet(self, distance, members);
      stage.held = held;
      for (std::size_t i = 0; i < members; ++i) stage.parts.push_back(detail::part_of(held, members, i));
      stage.sum_over = subtrees.neighbourhood(self, distance * members);
      held = stage.part();
      stages.push_back(std::move(stage));
      distance *= members;
    }
    return stages;
  }
};

}  // namespace adasum::schedules
