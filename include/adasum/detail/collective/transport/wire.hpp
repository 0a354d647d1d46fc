// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../core/message.hpp"
#include "../../../core/options.hpp"

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
/// there.
template <scalar T, class Space>
class wire {
 public:
  /// @param sent, received  the most elements that one exchange packs and unpacks
  wire(const Space& space, wire_format format, std::size_t sent, std::size_t received)
      : format_(format),
        sent_size_(rounds() ? std::max<std::size_t>(sent, 1) : 0),
        sent_(packed_buffer<Space, T>::allocate(space, sent_size_)),
        received_(packed_buffer<Space, T>::allocate(space, rounds() ? received : 0)) {}

  bool rounds() const { return format_ != wire_format::same; }

  /// Forget the targets of the last exchange.
  void begin() {
    sent_count_ = received_count_ = 0;
    targets_.clear();
  }
  void reserve(std::size_t messages) { targets_.reserve(messages); }

  outgoing pack(const Space& space, int peer, std::span<const T> elements) {
    if (!rounds()) return {peer, std::as_bytes(elements), memory_kind::space};
    const auto packed = std::span(sent_.data() + sent_count_, elements.size());
    sent_count_ += elements.size();
    convert(space, elements.data(), packed.data(), elements.size());
    return {peer, std::as_bytes(packed), memory_kind::space};
  }

  incoming buffer_for(int peer, std::span<T> elements) {
    if (!rounds()) return {peer, std::as_writable_bytes(elements), memory_kind::space};
    const auto packed = std::span(received_.data() + received_count_, elements.size());
    received_count_ += elements.size();
    targets_.push_back({packed.data(), elements});
    return {peer, std::as_writable_bytes(packed), memory_kind::space};
  }

  /// After the exchange: what was received, where it was wanted.
  void unpack(const Space& space) const {
    for (const auto& [from, to] : targets_) convert(space, static_cast<const bits*>(from), to.data(), to.size());
  }

  /// Elements as the others see them.
  void round(const Space& space, std::span<T> elements) {
    if (!rounds() || elements.empty()) return;
    // In pieces, as long as the buffer for packing.
    const std::size_t chunk = std::max<std::size_t>(sent_size_, 1);
    for (std::size_t x = 0; x < elements.size(); x += chunk) {
      const auto piece = elements.subspan(x, std::min(chunk, elements.size() - x));
      convert(space, static_cast<const T*>(piece.data()), sent_.data(), piece.size());
      convert(space, static_cast<const bits*>(sent_.data()), piece.data(), piece.size());
    }
  }

 private:
  using bits = packed_element<number_format::bfloat16>;  // of either format: which one, is decided at run time
  using half_bits = packed_element<number_format::binary16>;

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
