// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../../core/message.hpp"
#include "../../schedule/sum_order.hpp"

namespace adasum::detail {

/// Adds `values` over a group of ranks, in place, with the same bits on each of them (schedule/sum_order.hpp). One exchange
/// after another, so that the caller may do something else while one is in flight.
class small_allreduce {
 public:
  small_allreduce() = default;
  /// @param group  the ranks, in one order on all of them
  /// @param self   this rank's place in the group
  /// @param radix  see sum_radix; the same on all of them
  /// @param scratch  sum_order::most_received(group.size(), radix) times as many doubles as values
  small_allreduce(std::span<const int> group, std::size_t self, std::size_t radix, std::span<double> values,
                  std::span<double> scratch)
      : order_(group.size(), self, radix), group_(group), values_(values), scratch_(scratch) {}

  /// Adds what the last exchange brought, and appends the messages of the next one: none where only others have some.
  /// @return whether there is a next one; otherwise `values` holds the sum
  bool next(std::vector<outgoing>& out, std::vector<incoming>& in) {
    if (parts_received_ > 0) add_received();
    if (exchange_ == order_.exchanges()) return false;
    own_part_ = order_.visit(
        exchange_++, [&](std::size_t to) { out.push_back({group_[to], std::as_bytes(values_)}); },
        [&](std::size_t from) { in.push_back({group_[from], std::as_writable_bytes(received(parts_received_++))}); });
    return true;
  }

 private:
  std::span<double> received(std::size_t i) const { return scratch_.subspan(i * values_.size(), values_.size()); }

  /// In the order of the parts, this rank's own among them.
  void add_received() {
    const auto others = std::exchange(parts_received_, 0);
    const auto count = values_.size();
    for (std::size_t x = 0; x < count; ++x) {
      const double* const part = scratch_.data() + x;
      double sum = 0;
      for (std::size_t i = 0; i < own_part_; ++i) sum += part[i * count];
      sum += values_[x];
      for (std::size_t i = own_part_; i < others; ++i) sum += part[i * count];
      values_[x] = sum;
    }
  }

  sum_order order_;
  std::span<const int> group_;
  std::span<double> values_, scratch_;
  std::size_t exchange_ = 0;        // the next one
  std::size_t parts_received_ = 0;  // by the last one
  std::size_t own_part_ = 0;        // how many of these come before this rank's own
};

}  // namespace adasum::detail
