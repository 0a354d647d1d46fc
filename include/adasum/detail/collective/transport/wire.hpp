// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../../../core/message.hpp"
#include "../../../core/options.hpp"
#include "../../../core/wire_losses.hpp"
#include "../../references/space_ref.hpp"

namespace adasum::detail {

/// Messages of elements, rounded to 16 bits on their way if asked for. Packs into buffers of its own and unpacks from
/// there; elements that go to several ranks one after the other are packed once.
class wire {
 public:
  /// @param sent, received  the most elements that one exchange packs and unpacks
  wire(const space_ref& space, wire_format format, std::size_t sent, std::size_t received)
      : space_(space), format_(format), sent_size_(std::max<std::size_t>(sent, 1)) {
    if (!rounds()) return;
    sent_ = space.packing()->allocate(space.object(), sent_size_);
    received_ = space.packing()->allocate(space.object(), received);
  }

  bool rounds() const { return format_ != wire_format::same; }
  void begin_run() {
    lost_ = {};
    all_counted_ = true;
  }
  /// Forget the targets of the last exchange.
  void begin() {
    sent_count_ = received_count_ = 0;
    last_ = {};
    targets_.clear();
  }
  void reserve(std::size_t messages) { targets_.reserve(messages); }

  outgoing pack(int peer, const std::byte* elements, std::size_t count) {
    if (!rounds()) return {peer, {elements, count * space_.element_size()}, memory_kind::space};
    if (elements != last_.from || count != last_.count) {
      last_ = {elements, count, sent_.data() + sent_count_ * packed_size};
      sent_count_ += count;
      round_to(elements, last_.packed, count);
    }
    return {peer, {last_.packed, count * packed_size}, memory_kind::space};
  }
  /// As many bytes as these elements take on their way, which nobody reads.
  std::span<const std::byte> as_long_as(const std::byte* elements, std::size_t count) const {
    if (!rounds()) return {elements, count * space_.element_size()};
    return {sent_.data(), count * packed_size};
  }
  incoming buffer_for(int peer, std::byte* elements, std::size_t count) {
    if (!rounds()) return {peer, {elements, count * space_.element_size()}, memory_kind::space};
    auto* const packed = received_.data() + received_count_ * packed_size;
    received_count_ += count;
    targets_.push_back({packed, elements, count});
    return {peer, {packed, count * packed_size}, memory_kind::space};
  }
  /// After the exchange: what was received, where it was wanted.
  void unpack() const {
    for (const auto& one : targets_) unpack(one.from, one.to, one.count);
  }
  /// Elements as the others see them.
  void round(std::byte* elements, std::size_t count) {
    if (!rounds()) return;
    // In pieces, as long as the buffer for packing.
    for (std::size_t x = 0; x < count; x += sent_size_) {
      const auto length = std::min(sent_size_, count - x);
      std::byte* const piece = space_.at(elements, x);
      round_to(piece, sent_.data(), length);
      unpack(sent_.data(), piece, length);
    }
  }
  /// What this rank's elements have lost in this run; nothing where the space does not count.
  std::optional<wire_losses> losses() const { return all_counted_ ? std::optional(lost_) : std::nullopt; }

 private:
  static constexpr std::size_t packed_size = sizeof(packed_bfloat16);
  static_assert(sizeof(packed_binary16) == packed_size);

  struct packed_vector {
    const std::byte* from = nullptr;
    std::size_t count = 0;
    std::byte* packed = nullptr;
  };
  struct unpacked_vector {
    const std::byte* from;
    std::byte* to;
    std::size_t count;
  };

  void round_to(const std::byte* from, std::byte* to, std::size_t count) {
    if (count == 0) return;
    all_counted_ &= space_.packing()->pack(space_.object(), format_, from, to, count, lost_);
    space_.fence();
  }
  void unpack(const std::byte* from, std::byte* to, std::size_t count) const {
    if (count == 0) return;
    space_.packing()->unpack(space_.object(), format_, from, to, count);
    space_.fence();
  }

  space_ref space_;
  wire_format format_;
  std::size_t sent_size_;
  space_memory sent_, received_;
  std::size_t sent_count_ = 0, received_count_ = 0;
  packed_vector last_;
  std::vector<unpacked_vector> targets_;
  wire_losses lost_;
  bool all_counted_ = true;
};

}  // namespace adasum::detail
