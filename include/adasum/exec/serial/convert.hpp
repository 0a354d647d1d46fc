// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>

#include "elements.hpp"

namespace adasum::detail::serial {

/// to[i] = from[i], rounded to nearest even, between float and a 16-bit format.
template <scalar From, scalar To>
struct convert {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* from_bytes, void* to_bytes, std::size_t length) {
    const auto* const from = static_cast<const From*>(from_bytes);
    auto* const to = static_cast<To*>(to_bytes);
    constexpr std::size_t step = Bytes / sizeof(float);
    vector<float, Bytes> value;
    std::size_t x = 0;
    for (; x + step <= length; x += step) {
      load<Bytes>(value, from + x);
      store<Bytes>(to + x, value);
    }
    if (x < length) {
      alignas(From) unsigned char in[step * sizeof(From)] = {};
      alignas(To) unsigned char out[step * sizeof(To)];
      copy_fewer<sizeof(in), sizeof(From)>(in, from + x, (length - x) * sizeof(From));
      load<Bytes>(value, reinterpret_cast<const From*>(in));
      store<Bytes>(reinterpret_cast<To*>(out), value);
      copy_fewer<sizeof(out), sizeof(To)>(to + x, out, (length - x) * sizeof(To));
    }
  }
};

}  // namespace adasum::detail::serial
