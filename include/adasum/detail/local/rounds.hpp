// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>

#include "../../core/segments.hpp"

namespace adasum::detail {

/// Cuts segments into rounds of measure and mix. A space that computes from caches names round_bytes: then what one
/// round has measured is still there when it is mixed, and short segments share the cost of a round.
template <class Space>
class local_rounds {
 public:
  /// The most segments of a round, unless it is the only one.
  static constexpr std::size_t most = 64;

  /// @param bytes      of all vectors together, for each element
  /// @param undivided  whether there must be one round only
  local_rounds(segments_view segments, std::size_t bytes, bool undivided)
      : segments_(segments), bytes_(bytes), undivided_(undivided || !has_limit) {}

  /// How many segments a round has at most.
  std::size_t longest() const { return undivided_ ? segments_.size() : std::min(segments_.size(), most); }

  /// How many segments the round has that begins with the given one: as many as fit, at least one.
  std::size_t length_from(std::size_t first) const {
    const std::size_t rest = segments_.size() - first;
    if (undivided_) return rest;
    std::size_t count = 1;
    while (count < std::min(rest, most) && bytes_ * segments_.part(first, count + 1).all().size() <= limit()) ++count;
    return count;
  }

 private:
  static constexpr bool has_limit = requires { Space::round_bytes; };
  static constexpr std::size_t limit() {
    if constexpr (has_limit) return Space::round_bytes;
    return 0;
  }

  segments_view segments_;
  std::size_t bytes_;
  bool undivided_;
};

}  // namespace adasum::detail
