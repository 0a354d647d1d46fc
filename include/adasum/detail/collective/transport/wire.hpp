// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../core/message.hpp"
#include "../../../core/options.hpp"
#include "told_losses.hpp"

namespace adasum::detail {

/// 16-bit elements as they travel.
template <number_format Format>
struct packed_element {
  std::uint16_t bits;
};

}  // namespace adasum::detail

namespace adasum {
template <number_format Format>
struct scalar_traits<detail::packed_element<Format>> : stored_as<Format> {};
}  // namespace adasum

namespace adasum::detail {

/// Whether a space can round elements of T for the wire.
template <class Space, class T>
concept packs = requires(const Space& space, const T* from, packed_element<number_format::bfloat16>* to) {
  requires std::same_as<T, float>;
  space.template allocate<packed_element<number_format::bfloat16>>(std::size_t{}).data();
  space.copy(from, to, std::size_t{});
  space.copy(static_cast<const packed_element<number_format::bfloat16>*>(to), const_cast<T*>(from), std::size_t{});
};

/// Memory for packed elements; none where a space does not offer them.
template <class Space, class T>
struct packed_buffer {
  struct type {
    static packed_element<number_format::bfloat16>* data() { return nullptr; }
  };
  static type allocate(const Space&, std::size_t) { return {}; }
};
template <class Space, class T>
  requires packs<Space, T>
struct packed_buffer<Space, T> {
  static auto allocate(const Space& space, std::size_t count) {
    return space.template allocate<packed_element<number_format::bfloat16>>(count);
  }
  using type = decltype(std::declval<const Space&>().template allocate<packed_element<number_format::bfloat16>>(0));
};

/// Messages of elements, rounded to 16 bits on their way if asked for. Packs into buffers of its own and unpacks from
/// there. Where the host can write in these, what was lost in rounding follows the elements of each message, so that who
/// gets them knows. (Behind elements in memory of a device, it would take two more copies between that and the host.)
template <scalar T, class Space>
class wire {
 public:
  /// Bytes behind the elements of each message that is rounded.
  static constexpr std::size_t losses_size = device_space<Space> ? 0 : sizeof(told_losses);

  /// @param sent, received  the most elements that one exchange packs and unpacks
  /// @param messages        the most messages of one exchange, each way
  wire(const Space& space, wire_format format, std::size_t sent, std::size_t received, std::size_t messages = 1)
      : format_(format),
        sent_size_(rounds() ? std::max<std::size_t>(sent, 1) : 0),
        sent_(packed_buffer<Space, T>::allocate(space, rounds() ? sent_size_ + messages * room : 0)),
        received_(packed_buffer<Space, T>::allocate(space, rounds() ? received + messages * room : 0)) {}

  bool rounds() const { return format_ != wire_format::same; }

  /// Forget the targets of the last exchange.
  void begin() {
    sent_count_ = received_count_ = 0;
    targets_.clear();
  }
  void reserve(std::size_t messages) { targets_.reserve(messages); }

  /// @param lost  what the vector of these elements has lost before
  outgoing pack(const Space& space, int peer, std::span<const T> elements, told_losses lost = {}) {
    if (!rounds()) return {peer, std::as_bytes(elements), memory_kind::space};
    const auto packed = std::span(sent_.data() + sent_count_, elements.size() + room);
    sent_count_ += packed.size();
    lost += round_to(space, elements.data(), packed.data(), elements.size());
    if constexpr (room > 0) std::memcpy(static_cast<void*>(packed.data() + elements.size()), &lost, losses_size);
    return {peer, std::as_bytes(packed), memory_kind::space};
  }

  /// As many bytes as these elements take on their way, which nobody reads.
  std::span<const std::byte> as_long_as(std::span<const T> elements) const {
    if (!rounds()) return std::as_bytes(elements);
    return std::as_bytes(std::span(static_cast<const bits*>(sent_.data()), elements.size() + room));
  }

  incoming buffer_for(int peer, std::span<T> elements) {
    if (!rounds()) return {peer, std::as_writable_bytes(elements), memory_kind::space};
    const auto packed = std::span(received_.data() + received_count_, elements.size() + room);
    received_count_ += packed.size();
    targets_.push_back({packed.data(), elements});
    return {peer, std::as_writable_bytes(packed), memory_kind::space};
  }

  /// After the exchange: what was received, where it was wanted.
  /// @return what its vectors had lost
  told_losses unpack(const Space& space) const {
    told_losses all;
    for (const auto& one : targets_) {
      convert(space, one.from, one.to.data(), one.to.size());
      if constexpr (room > 0) {
        told_losses lost;
        std::memcpy(&lost, static_cast<const void*>(one.from + one.to.size()), losses_size);
        all += lost;
      }
    }
    return all;
  }

  /// Elements as the others see them. @return what they lost
  told_losses round(const Space& space, std::span<T> elements) {
    told_losses lost;
    if (!rounds() || elements.empty()) return lost;
    // In pieces, as long as the buffer for packing.
    const std::size_t chunk = std::max<std::size_t>(sent_size_, 1);
    for (std::size_t x = 0; x < elements.size(); x += chunk) {
      const auto piece = elements.subspan(x, std::min(chunk, elements.size() - x));
      lost += round_to(space, static_cast<const T*>(piece.data()), sent_.data(), piece.size());
      convert(space, static_cast<const bits*>(sent_.data()), piece.data(), piece.size());
    }
    return lost;
  }

 private:
  using bits = packed_element<number_format::bfloat16>;  // of either format: which one, is decided at run time
  using half_bits = packed_element<number_format::binary16>;
  static constexpr std::size_t room = losses_size / sizeof(bits);  // in elements
  static_assert(sizeof(told_losses) % sizeof(bits) == 0);

  /// @return what the elements lost
  told_losses round_to(const Space& space, const T* from, bits* to, std::size_t count) const {
    told_losses lost;
    if constexpr (requires { space.copy(from, to, count, lost.counted); }) {
      if (count == 0) return lost;
      if (format_ == wire_format::bfloat16)
        space.copy(from, to, count, lost.counted);
      else
        space.copy(from, reinterpret_cast<half_bits*>(to), count, lost.counted);
      space.fence();
    } else {
      convert(space, from, to, count);
      lost.uncounted = count;
    }
    return lost;
  }

  template <class From, class To>
  void convert(const Space& space, const From* from, To* to, std::size_t count) const {
    if constexpr (packs<Space, T>) {
      if (count == 0) return;
      if (format_ == wire_format::bfloat16)
        space.copy(from, to, count);
      else if constexpr (std::same_as<From, T>)
        space.copy(from, reinterpret_cast<half_bits*>(to), count);
      else
        space.copy(reinterpret_cast<const half_bits*>(from), to, count);
      space.fence();
    } else {
      (void)space, (void)from, (void)to, (void)count;
    }
  }

  struct unpacked {
    const bits* from;
    std::span<T> to;
  };
  using buffer = typename packed_buffer<Space, T>::type;

  wire_format format_;
  std::size_t sent_size_;
  buffer sent_, received_;
  std::size_t sent_count_ = 0, received_count_ = 0;
  std::vector<unpacked> targets_;
};

}  // namespace adasum::detail
