// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "folding.hpp"

namespace adasum::schedules {

/// Part i of `range` cut into `count` nearly equal parts; of two, the first has ⌊size/2⌋ elements.
constexpr index_range part_of(index_range range, std::size_t count, std::size_t i) {
  const auto cut = [&](std::size_t j) {
    return range.begin + range.size() / count * j + range.size() % count * j / count;
  };
  return {cut(i), cut(i + 1)};
}

/// At each level `radix` ranks cut the elements that they hold into as many parts and exchange them all-to-all; each
/// combines one part, on which it goes on. The partial inner products are summed over all ranks that hold parts of the
/// same vectors. Afterwards the levels are walked back to gather the result.
///
/// Each rank sends 2(P-1)/P·N elements at any radix; the levels are log_radix P, and arithmetic per element grows with
/// the radix. Radix 2 is recursive vector halving, distance doubling (Maleki et al., MLSys 2021, section 4, AdasumRVH).
struct splitting {
  static constexpr std::string_view name = "splitting";
  static constexpr bool all_at_once = false;

  /// A power of two, at least 2; levels at the end may have a smaller one.
  std::size_t radix = 2;

  /// @throws bad_input if the radix is not a power of two of at least 2
  std::vector<stage> stages(int rank, int size, const problem& what) const {
    if (radix < 2 || !std::has_single_bit(radix))
      throw bad_input("adasum::schedules::splitting: the radix " + std::to_string(radix) +
                      " is not a power of two of at least 2");
    index_range held{0, what.length};
    auto levels = fold(rank, size, held);
    if (!takes_part(levels)) return levels;
    const node_numbering nodes(size);
    const auto self = nodes.node_of(rank);
    for (std::size_t distance = 1; distance < nodes.count();) {
      const auto members = std::min(radix, nodes.count() / distance);
      auto level = nodes.meet(self, distance, members);
      level.held = held;
      for (std::size_t i = 0; i < members; ++i) level.parts.push_back(part_of(held, members, i));
      level.sum_over = nodes.neighbourhood(self, distance * members);
      held = level.parts[level.self];
      levels.push_back(std::move(level));
      distance *= members;
    }
    return levels;
  }
};

}  // namespace adasum::schedules
