// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../core/segments.hpp"

namespace adasum::detail {

/// A few consecutive elements of one segment: what one thread, or one team or block of threads, works on.
struct tile {
  std::size_t segment;
  std::size_t begin, end;  ///< counted from the window's origin
};

/// Cuts a window into tiles of at most `longest` elements, in order, so that one kernel serves any number of segments.
/// The cuts depend on the window alone: sums over tiles, taken in order, have the same bits however many threads there
/// are.
inline std::vector<tile> tiles_of(const slice& window, std::size_t longest) {
  std::vector<tile> tiles;
  const auto [first, last] = window.touched();
  for (std::size_t k = first; k < last; ++k) {
    const auto piece = window.local(k);
    for (auto begin = piece.begin; begin < piece.end; begin += longest)
      tiles.push_back({k, begin, begin + std::min(longest, piece.end - begin)});
  }
  return tiles;
}

/// How many of the tiles belong to segments before k, for k = 0 … segments: the tiles of segment k are those from the
/// k-th number to the next.
inline std::vector<std::size_t> first_tiles(std::span<const tile> tiles, std::size_t segments) {
  std::vector<std::size_t> first(segments + 1, 0);
  for (const auto& one : tiles) ++first[one.segment + 1];
  for (std::size_t k = 0; k < segments; ++k) first[k + 1] += first[k];
  return first;
}

}  // namespace adasum::detail
