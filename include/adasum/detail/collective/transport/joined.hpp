// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "../../../core/message.hpp"
#include "../../../core/report.hpp"
#include "../../../schedule/transfers.hpp"
#include "../../references/space_ref.hpp"

namespace adasum::detail {

/// How many elements are as long as the longest records that are joined to one of these messages.
inline std::size_t room_for_records(const std::vector<transfer>& messages, std::size_t segments,
                                    std::size_t element_size) {
  std::size_t records = 0;
  for (const auto& one : messages)
    if (one.joined) records = std::max(records, one.leaves.size() * segments);
  return (records * sizeof(report::entry) + element_size - 1) / element_size;
}

/// Messages of elements with records at their end (transfer::joined), in memory that the host reads and writes. Elements
/// that are sent are copied to where there is room behind them: once, where several ranks get the same. Elements that are
/// received stay where they arrive.
class joined_messages {
 public:
  /// @param sent  the most elements that one exchange sends in such messages, and room for records behind each
  joined_messages(const space_ref& space, std::size_t sent) : space_(space), buffer_(space.allocate(sent)) {}

  /// Forget the last exchange.
  void begin() {
    used_ = 0;
    copied_ = {};
    arriving_.clear();
  }
  void reserve(std::size_t messages) { arriving_.reserve(messages); }

  /// @param records   the same for all peers of one exchange
  /// @param withheld  nobody reads it, so it need not be made: the execution space may be what failed
  outgoing send(int peer, const std::byte* elements, std::size_t count, std::span<const report::entry> records,
                bool withheld) {
    const std::span<const std::byte> bytes(elements, count * space_.element_size());
    if (bytes.data() != copied_.data() || bytes.size() != copied_.size()) {
      std::byte* const to = space_.at(buffer_.data(), used_);
      if (!withheld) {
        space_.copy(elements, to, count);
        space_.fence();
        std::memcpy(to + bytes.size(), records.data(), records.size_bytes());
      }
      used_ += count + (records.size_bytes() + space_.element_size() - 1) / space_.element_size();
      copied_ = bytes;
      message_ = {to, bytes.size() + records.size_bytes()};
    }
    return {peer, message_, memory_kind::space};
  }
  /// @param elements  there is room behind them
  incoming receive(int peer, std::byte* elements, std::size_t count, std::span<report::entry> records) {
    const auto bytes = count * space_.element_size();
    arriving_.push_back({elements + bytes, records});
    return {peer, {elements, bytes + records.size_bytes()}, memory_kind::space};
  }
  /// After the exchange: the records, to where they belong.
  void unpack() const {
    for (const auto& [from, to] : arriving_)
      std::memcpy(static_cast<void*>(to.data()), static_cast<const void*>(from), to.size_bytes());
  }

 private:
  struct arriving {
    const std::byte* from;
    std::span<report::entry> to;
  };

  space_ref space_;
  space_memory buffer_;
  std::size_t used_ = 0;  // of it, in elements
  std::span<const std::byte> copied_;
  std::span<const std::byte> message_;  // what was made of these
  std::vector<arriving> arriving_;
};

}  // namespace adasum::detail
