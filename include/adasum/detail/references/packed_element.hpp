// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <concepts>
#include <cstddef>

#include "../../core/scalar.hpp"

namespace adasum::detail {

// 16-bit elements as they travel.
using packed_bfloat16 = half_bits<number_format::bfloat16>;
using packed_binary16 = half_bits<number_format::binary16>;

/// Whether a space can round elements of T for messages.
template <class Space, class T>
concept packs = requires(const Space& space, const T* from, packed_bfloat16* to) {
  requires std::same_as<T, float>;
  space.template allocate<packed_bfloat16>(std::size_t{}).data();
  space.copy(from, to, std::size_t{});
  space.copy(static_cast<const packed_bfloat16*>(to), const_cast<T*>(from), std::size_t{});
};

}  // namespace adasum::detail
