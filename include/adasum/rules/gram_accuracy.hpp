// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

namespace adasum::rules {

/// By how much an entry of a Gram matrix may be wrong, relative to the lengths of its two vectors: a few roundings of
/// double, of the products and of their sums.
inline constexpr double gram_accuracy = 0x1p-48;

}  // namespace adasum::rules
