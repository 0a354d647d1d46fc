// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../core/message.hpp"
#include "../../../core/report.hpp"
#include "../../../core/scalar.hpp"
#include "../../../schedule/transfers.hpp"

namespace adasum::detail {

/// How many elements are as long as the longest records that are joined to one of these messages.
template <scalar T>
std::size_t room_for_records(const std::vector<transfer>& messages, std::size_t segments) {
  std::size_t records = 0;
  for (const auto& one : messages)
    if (one.joined) records = std::max(records, one.leaves.size() * segments);
  return (records * sizeof(report::entry) + sizeof(T) - 1) / sizeof(T);
}

/// Messages of elements with records at their end (transfer::joined), in memory that the host reads and writes. Elements
/// that are sent are copied to where there is room behind them: once, where several ranks get the same. Elements that are
/// received stay where they arrive.
template <scalar T, class Space>
class joined_messages {
 public:
  /// @param sent  the most elements that one exchange sends in such messages, and room for records behind each
  joined_messages(const Space& space, std::size_t sent) : buffer_(space.template allocate<T>(sent)) {}

  /// Forget the last exchange.
  void begin() {
    used_ = 0;
    copied_ = {};
    arriving_.clear();
  }
  void reserve(std::size_t messages) { arriving_.reserve(messages); }

  /// @param records   the same for all peers of one exchange
  /// @param withheld  nobody reads it, so it need not be made: the execution space may be what failed
  outgoing send(const Space& space, int peer, std::span<const T> elements, std::span<const report::entry> records,
                bool withheld) {
    if (elements.data() != copied_.data() || elements.size() != copied_.size()) {
      T* const to = buffer_.data() + used_;
      if (!withheld) {
        space.copy(elements.data(), to, elements.size());
        space.fence();
        std::memcpy(static_cast<void*>(to + elements.size()), records.data(), records.size_bytes());
      }
      used_ += elements.size() + (records.size_bytes() + sizeof(T) - 1) / sizeof(T);
      copied_ = elements;
      message_ = {reinterpret_cast<const std::byte*>(to), elements.size_bytes() + records.size_bytes()};
    }
    return {peer, message_, memory_kind::space};
  }

  /// @param elements  there is room behind them
  incoming receive(int peer, std::span<T> elements, std::span<report::entry> records) {
    arriving_.push_back({elements.data() + elements.size(), records});
    return {peer,
            {reinterpret_cast<std::byte*>(elements.data()), elements.size_bytes() + records.size_bytes()},
            memory_kind::space};
  }
  /// After the exchange: the records, to where they belong.
  void unpack() const {
    for (const auto& [from, to] : arriving_)
      std::memcpy(static_cast<void*>(to.data()), static_cast<const void*>(from), to.size_bytes());
  }

 private:
  struct arriving {
    const T* from;
    std::span<report::entry> to;
  };

  decltype(std::declval<const Space&>().template allocate<T>(0)) buffer_;
  std::size_t used_ = 0;  // of it
  std::span<const T> copied_;
  std::span<const std::byte> message_;  // what was made of these
  std::vector<arriving> arriving_;
};

}  // namespace adasum::detail
