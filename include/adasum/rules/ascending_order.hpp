// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace adasum::rules {

/// @cond internal
/// Which value is the smallest, which the next, and so on. Of equal values, the one with the lower index comes first.
inline std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [values](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  return order;
}
/// @endcond

}  // namespace adasum::rules
