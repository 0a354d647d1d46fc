// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstdint>

namespace adasum {

/// What float elements lost when they were rounded to 16 bits (options::wire).
struct wire_losses {
  std::uint64_t overflowed = 0;  ///< finite elements that became infinite
  std::uint64_t vanished = 0;    ///< elements other than zero that became zero

  /// Adds those of another vector.
  constexpr wire_losses& operator+=(const wire_losses& more) {
    overflowed += more.overflowed;
    vanished += more.vanished;
    return *this;
  }
  friend constexpr bool operator==(const wire_losses&, const wire_losses&) = default;
};

}  // namespace adasum
