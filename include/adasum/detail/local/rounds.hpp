// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>

#include "../../core/segments.hpp"

namespace adasum::detail {

/// Cuts segments into rounds of measure and mix. A space that computes from caches names round_bytes: then what one
/// round has measured is still there when it is mixed, and short segments share the cost of a round.
class local_rounds {
 public:
  /// The most segments of a round, unless it is the only one.
  static constexpr std::size_t most = 64;

  /// @param bytes      of all vectors together, for each element
  /// @param undivided  whether there must be one round only
  /// @param limit      see space_table::round_bytes
  local_rounds(segments_view segments, std::size_t bytes, bool undivided, std::size_t limit)
      : segments_(segments), bytes_(bytes), limit_(limit), undivided_(undivided || limit == 0) {}

  /// How many segments a round has at most.
  std::size_t longest() const { return undivided_ ? segments_.size() : std::min(segments_.size(), most); }

  /// How many segments the round has that begins with the given one: as many as fit, at least one.
  std::size_t length_from(std::size_t first) const {
    const std::size_t rest = segments_.size() - first;
    if (undivided_) return rest;
    std::size_t count = 1;
    while (count < std::min(rest, most) && bytes_ * segments_.part(first, count + 1).all().size() <= limit_) ++count;
    return count;
  }

 private:
  segments_view segments_;
  std::size_t bytes_, limit_;
  bool undivided_;
};

}  // namespace adasum::detail
