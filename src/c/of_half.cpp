// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>

#include <adasum/core/scalar.hpp>

namespace adasum::c {

/// Any compiler's: only the bits are looked at.
struct half {
  std::uint16_t bits;
};

}  // namespace adasum::c

template <>
struct adasum::scalar_traits<adasum::c::half> : adasum::stored_as<adasum::number_format::binary16> {};

#include "of_type.hpp"

namespace adasum::c {

const calls_of_type& calls_of_half() {
  static constinit const calls_of_elements<half> calls("half");
  return calls;
}

}  // namespace adasum::c
