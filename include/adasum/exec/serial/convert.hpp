// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../../core/wire_losses.hpp"
#include "elements.hpp"

namespace adasum::detail::serial {

/// Floats beyond the ends of a 16-bit format, as bits without the sign. What is half way is rounded to even: up to
/// infinity, and down to zero.
template <number_format Format>
struct ends_of_range {
  static_assert(Format == number_format::binary16 || Format == number_format::bfloat16);
  static constexpr bool is_half = Format == number_format::binary16;
  static constexpr std::int32_t infinite = 0x7f800000;
  static constexpr std::int32_t first_infinite = is_half ? 0x477ff000 : 0x7f7f8000;  // 65520; 2^128 (1 - 2^-9)
  static constexpr std::int32_t last_zero = is_half ? 0x33000000 : 0x00008000;       // 2^-25; 2^-134
};

/// to[i] = from[i], rounded to nearest even, between float and a 16-bit format; and counts what is lost on the way to 16
/// bits, if it is to. (Of the floats, which tell without a look at the 16 bits that the processor's own instructions make of
/// them.)
template <scalar From, scalar To, bool Counts = false>
struct convert {
  /// @param losses  null if it is not to count
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* from, void* to, std::size_t length, wire_losses* losses) {
    constexpr std::size_t step = Bytes / sizeof(float), block = step << 20;  // each lane counts to 2^20
    for (std::size_t x = 0; x < length; x += block)
      run_block<Bytes>(static_cast<const From*>(from) + x, static_cast<To*>(to) + x, std::min(block, length - x),
                       losses);
  }

 private:
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run_block(const From* from, To* to, std::size_t length, wire_losses* losses) {
    constexpr std::size_t step = Bytes / sizeof(float);
    vector<std::int32_t, Bytes> overflowed = {}, vanished = {};
    vector<float, Bytes> value;
    std::size_t x = 0;
    for (; x + step <= length; x += step) {
      load<Bytes>(value, from + x);
      store<Bytes>(to + x, value);
      if constexpr (Counts) count<Bytes>(value, overflowed, vanished);
    }
    if (x < length) {
      alignas(From) unsigned char in[step * sizeof(From)] = {};
      alignas(To) unsigned char out[step * sizeof(To)];
      copy_fewer<sizeof(in), sizeof(From)>(in, from + x, (length - x) * sizeof(From));
      load<Bytes>(value, reinterpret_cast<const From*>(in));
      store<Bytes>(reinterpret_cast<To*>(out), value);
      if constexpr (Counts) count<Bytes>(value, overflowed, vanished);
      copy_fewer<sizeof(out), sizeof(To)>(to + x, out, (length - x) * sizeof(To));
    }
    if constexpr (Counts)
      for (std::size_t lane = 0; lane < step; ++lane) {
        losses->overflowed += static_cast<std::uint64_t>(overflowed[lane]);
        losses->vanished += static_cast<std::uint64_t>(vanished[lane]);
      }
  }

  /// By the signs of differences, none of which overflows: comparisons into lanes are what GCC 12 does one by one where
  /// vectors have 64 bytes.
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void count(const vector<float, Bytes>& value, vector<std::int32_t, Bytes>& overflowed,
                                           vector<std::int32_t, Bytes>& vanished) {
    using ends = ends_of_range<format_of<To>>;
    using words = vector<std::int32_t, Bytes>;
    words bits;
    bit_copy(bits, value);
    const words magnitude = bits & 0x7fffffff;
    const words is_large_and_finite = (ends::first_infinite - 1 - magnitude) & (magnitude - ends::infinite);
    const words is_small_and_not_zero = (magnitude - ends::last_zero - 1) & -magnitude;
    overflowed -= is_large_and_finite >> 31;  // all bits are the sign: -1
    vanished -= is_small_and_not_zero >> 31;
  }
};

}  // namespace adasum::detail::serial
