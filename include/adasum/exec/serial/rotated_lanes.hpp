// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elements.hpp"
#include "simd.hpp"

/// Reading in whole cache lines vectors that begin within one, as long vectors from malloc do, and most segments. A
/// register of 64 bytes spans two lines there: twice the accesses, and from memory a quarter more time (Zen 5). So
/// kernels read the first few elements, the head, by themselves, and go on from the next boundary.
///
/// An element then stands `head` lanes before its place, and elements of the first `head` lanes one chain earlier in
/// the last lanes: the lanes are rotated. Sums of lanes must not depend on where vectors lie, so they are rotated back.
namespace adasum::detail::serial {

template <class L>
using lane_integer = std::conditional_t<sizeof(L) == 4, std::int32_t, std::int64_t>;
template <class L, std::size_t Bytes>
using lane_mask = vector<lane_integer<L>, Bytes>;

/// 0, 1, 2, …
template <class Integer, std::size_t Count>
struct numbers {
  constexpr numbers() : of{} {
    for (std::size_t i = 0; i < Count; ++i) of[i] = static_cast<Integer>(i);
  }
  alignas(Count * sizeof(Integer)) Integer of[Count];
};

/// All bits of the last `count` lanes.
template <class L, std::size_t Bytes>
[[gnu::always_inline]] inline void last_lanes(lane_mask<L, Bytes>& mask, std::size_t count) {
  constexpr std::size_t lanes = Bytes / sizeof(L);
  static constexpr numbers<lane_integer<L>, lanes> in_order;
  lane_mask<L, Bytes> lane;
  __builtin_memcpy(&lane, in_order.of, Bytes);
  mask = lane >= static_cast<lane_integer<L>>(lanes - count);
}

/// The first `head` elements, in the last lanes, and zeros.
/// @param others_before  whether as many elements as there are lanes lie before `from`
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline void load_head(vector<T, Bytes>& out, const T* from, std::size_t head,
                                             bool others_before) {
  constexpr std::size_t lanes = Bytes / sizeof(T);
  if (others_before) {
    lane_mask<T, Bytes> bits, mask;
    last_lanes<T, Bytes>(mask, head);
    __builtin_memcpy(&bits, from - (lanes - head), Bytes);
    bit_copy(out, lane_mask<T, Bytes>(bits & mask));
  } else {
    alignas(Bytes) T padded[lanes] = {};
    copy_fewer<Bytes, sizeof(T)>(padded + (lanes - head), from, head * sizeof(T));
    __builtin_memcpy(&out, padded, Bytes);
  }
}

/// `Parts` vectors of doubles, lane after lane: each goes `head` lanes on, the last ones to the beginning.
template <std::size_t Bytes, std::size_t Parts>
[[gnu::always_inline]] inline void rotate_lanes_back(vector<double, Bytes> (&sums)[Parts], std::size_t head) {
  constexpr std::size_t lanes = Parts * Bytes / sizeof(double);
  double twice[2 * lanes];
  __builtin_memcpy(twice, sums, sizeof(sums));
  __builtin_memcpy(twice + lanes, sums, sizeof(sums));
  __builtin_memcpy(sums, twice + (lanes - head), sizeof(sums));
}

}  // namespace adasum::detail::serial
