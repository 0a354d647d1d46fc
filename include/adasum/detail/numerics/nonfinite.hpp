// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/scalar.hpp"
#include "../references/space_ref.hpp"
#include "segment_copies.hpp"

/// Which gradients are finite, found out before anything changes: for the policies exclude and raise.
namespace adasum::detail {

/// One flag for each segment: whether it holds Inf or NaN. Reads the gradient once.
/// @param gram  room for one double per segment
inline void find_nonfinite(const space_ref& space, const void* gradient, segments_view segments, std::span<double> gram,
                           std::span<unsigned char> flags) {
  const void* const vector = gradient;
  space.measure(whole(segments), std::span(&vector, 1), gram.data());
  space.fence();
  for (std::size_t k = 0; k < segments.size(); ++k) {
    bool finite = is_finite(gram[k]);
    if (space.format() == number_format::binary64 && is_infinite(gram[k])) {
      // Inf, or finite elements whose squares overflow: decide on a smaller copy.
      const auto in = space.copies();
      const segment_copies copy(space, in, std::span(&vector, 1), segments.range(k));
      copy.scale(copy.at(0), -600);
      const void* const scaled = copy.at(0);
      copy.measure(std::span(&scaled, 1), &gram[k]);
      finite = is_finite(gram[k]);
    }
    flags[k] = finite ? 0 : 1;
  }
}

/// "rank 2 (segments 0, 3); rank 5 (segment 1)" from the flags of all gradients, one after the other.
inline std::string describe_nonfinite(std::span<const unsigned char> flags, std::size_t segments,
                                      const std::string& whose) {
  std::string text;
  for (std::size_t r = 0; r * segments < flags.size(); ++r) {
    std::string list;
    std::size_t count = 0;
    for (std::size_t k = 0; k < segments; ++k)
      if (flags[r * segments + k] && count++ < 10) list += (list.empty() ? "" : ", ") + std::to_string(k);
    if (count == 0) continue;
    if (!text.empty()) text += "; ";
    text.append(whose).append(" ").append(std::to_string(r)).append(count == 1 ? " (segment " : " (segments ");
    text.append(list).append(count > 10 ? ", …)" : ")");
  }
  return text;
}

}  // namespace adasum::detail
