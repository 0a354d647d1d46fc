// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <limits>

#include "../core/segments.hpp"

namespace adasum::detail {

/// As many parts as there are ranks. One part: vectors are never cut.
inline constexpr std::size_t any_number_of_parts = std::numeric_limits<std::size_t>::max();

/// Part i of `range` cut into `count` nearly equal parts; of two, the first has ⌊size/2⌋ elements.
constexpr index_range part_of(index_range range, std::size_t count, std::size_t i) {
  const auto cut = [&](std::size_t j) {
    return range.begin + range.size() / count * j + range.size() % count * j / count;
  };
  return {cut(i), cut(i + 1)};
}

}  // namespace adasum::detail
