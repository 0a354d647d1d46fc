// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <limits>

#include "oracle.hpp"

namespace adasum::test {

/// Whether the oracle can square the largest and the smallest doubles. Not on ppc64le, whose long double has more digits than
/// double, but the same exponents.
inline constexpr bool real_holds_squares =
    std::numeric_limits<real>::max_exponent >= 2 * std::numeric_limits<double>::max_exponent;

}  // namespace adasum::test
