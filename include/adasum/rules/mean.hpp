// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The arithmetic mean (1/n) Σ gᵢ: each side of a pair is weighted by the number of gradients that it combines.
/// Nothing is measured, so there is nothing to guard against. The error is a rounding of each term and of each sum. What
/// data-parallel training usually does with gradients. No parameters.
struct mean {
  static constexpr std::string_view name = "mean";
  static constexpr inner_products needs = inner_products::none;

  ADASUM_HOST_DEVICE constexpr pair_weights operator()(const pair_gram& g) const noexcept {
    const auto a = static_cast<double>(g.leaves_a), b = static_cast<double>(g.leaves_b);
    if (a + b == 0) return {0, 0};  // nobody takes part
    return {a / (a + b), b / (a + b)};
  }
};

}  // namespace adasum::rules
