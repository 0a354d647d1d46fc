// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>

#include <adasum/core/scalar.hpp>

namespace adasum::c {

/// Any compiler's: only the bits are looked at.
struct bfloat16 {
  std::uint16_t bits;
};

}  // namespace adasum::c

template <>
struct adasum::scalar_traits<adasum::c::bfloat16> : adasum::stored_as<adasum::number_format::bfloat16> {};

#include "of_type.hpp"

namespace adasum::c {

const calls_of_type& calls_of_bfloat16() {
  static constinit const calls_of_elements<bfloat16> calls("bfloat16");
  return calls;
}

}  // namespace adasum::c
