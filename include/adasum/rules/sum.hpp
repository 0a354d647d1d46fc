// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The plain sum Σ gᵢ, added along the tree of tree_order.hpp.
struct sum {
  static constexpr std::string_view name = "sum";
  static constexpr bool needs_gram = false;

  ADASUM_HOST_DEVICE constexpr pair_weights operator()(const pair_gram&) const noexcept { return {1, 1}; }
};

}  // namespace adasum::rules
