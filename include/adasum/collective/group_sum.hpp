// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "../core/message.hpp"

namespace adasum::detail {

/// Adds `values` over a group of ranks, in place, with the same bits on each of them: by recursive doubling, since
/// x + y and y + x are equal; ranks beyond the largest power of two add theirs to another's first and are told the sum.
/// One exchange after another, so that the caller may do something else while one is in flight.
class group_sum {
 public:
  group_sum() = default;
  /// @param group  the ranks, in one order on all of them
  /// @param self   this rank's place in the group
  /// @param room   as many doubles as values
  group_sum(std::span<const int> group, std::size_t self, std::span<double> values, std::span<double> room)
      : group_(group), self_(self), doubled_(std::bit_floor(group.size())), values_(values), room_(room) {}

  /// Adds what the last exchange brought. @return the next one; nothing when `values` holds the sum
  std::optional<message_pair> next() {
    if (std::exchange(to_add_, false)) std::ranges::transform(values_, room_, values_.begin(), std::plus{});
    const auto turn = turn_++;
    if (self_ >= doubled_) {
      if (turn == 0) return message_pair{send(self_ - doubled_), {}};
      if (turn == 1) return message_pair{{}, receive(self_ - doubled_, values_)};
      return {};
    }
    const bool has_partner = self_ + doubled_ < group_.size();
    if (turn == 0 && has_partner) {
      to_add_ = true;
      return message_pair{{}, receive(self_ + doubled_, room_)};
    }
    if (distance_ < doubled_) {
      to_add_ = true;
      const auto peer = self_ ^ std::exchange(distance_, 2 * distance_);
      return message_pair{send(peer), receive(peer, room_)};
    }
    if (has_partner && !std::exchange(told_, true)) return message_pair{send(self_ + doubled_), {}};
    return {};
  }

 private:
  outgoing send(std::size_t to) const { return {group_[to], std::as_bytes(values_)}; }
  incoming receive(std::size_t from, std::span<double> into) const {
    return {group_[from], std::as_writable_bytes(into)};
  }

  std::span<const int> group_;
  std::size_t self_ = 0, doubled_ = 0, turn_ = 0, distance_ = 1;
  std::span<double> values_, room_;
  bool to_add_ = false, told_ = false;
};

}  // namespace adasum::detail
