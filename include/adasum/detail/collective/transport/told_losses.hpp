// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <cstdint>

#include "../../../core/wire_losses.hpp"

namespace adasum::detail {

/// What one rank tells another of what was lost in rounding.
struct told_losses {
  wire_losses counted;
  std::uint64_t uncounted = 0;  ///< elements that were rounded by an execution space that does not count

  constexpr told_losses& operator+=(const told_losses& more) {
    counted += more.counted;
    uncounted += more.uncounted;
    return *this;
  }
};

}  // namespace adasum::detail
