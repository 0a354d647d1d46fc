// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The arithmetic mean (1/n) Σ gᵢ: each side of a pair weighs as much as the gradients that it holds.
struct mean {
  static constexpr std::string_view name = "mean";
  static constexpr bool needs_gram = false;

  constexpr pair_weights operator()(const pair_gram& g) const {
    const auto a = static_cast<double>(g.leaves_a), b = static_cast<double>(g.leaves_b);
    if (a + b == 0) return {0, 0};  // nobody takes part
    return {a / (a + b), b / (a + b)};
  }
};

}  // namespace adasum::rules
