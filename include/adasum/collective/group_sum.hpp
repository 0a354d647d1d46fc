// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "../core/message.hpp"

namespace adasum::detail {

/// Adds `values` over a group of ranks, in place, with the same bits on each of them: by recursive doubling, since
/// x + y and y + x are equal; ranks beyond the largest power of two add theirs to another's first and are told the sum.
///
/// @param group     the ranks, in one order on all of them
/// @param self      this rank's place in the group
/// @param room      as many doubles as values
/// @param exchange  exchange(span<const outgoing>, span<const incoming>)
template <class Exchange>
void sum_over_group(std::span<const int> group, std::size_t self, std::span<double> values, std::span<double> room,
                    Exchange&& exchange) {
  const auto doubled = std::bit_floor(group.size());
  const auto send = [&](std::size_t to) { return outgoing{group[to], std::as_bytes(values)}; };
  const auto receive = [&](std::size_t from, std::span<double> into) {
    return incoming{group[from], std::as_writable_bytes(into)};
  };
  const auto add = [&] { std::ranges::transform(values, room, values.begin(), std::plus{}); };

  if (self >= doubled) {
    const auto out = send(self - doubled);
    exchange(std::span(&out, 1), {});
    const auto in = receive(self - doubled, values);
    exchange({}, std::span(&in, 1));
    return;
  }
  const bool has_partner = self + doubled < group.size();
  if (has_partner) {
    const auto in = receive(self + doubled, room);
    exchange({}, std::span(&in, 1));
    add();
  }
  for (std::size_t distance = 1; distance < doubled; distance *= 2) {
    const auto out = send(self ^ distance);
    const auto in = receive(self ^ distance, room);
    exchange(std::span(&out, 1), std::span(&in, 1));
    add();
  }
  if (has_partner) {
    const auto out = send(self + doubled);
    exchange(std::span(&out, 1), {});
  }
}

}  // namespace adasum::detail
