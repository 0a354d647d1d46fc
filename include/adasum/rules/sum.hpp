// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The plain sum Σ gᵢ, added along the tree of tree_order.hpp: what MPI_SUM gives, but for rounding. Nothing is measured, so
/// there is nothing to guard against; a sum that overflows is Inf. The error is a rounding of each sum. No parameters.
struct sum {
  static constexpr std::string_view name = "sum";
  static constexpr inner_products needs = inner_products::none;

  ADASUM_HOST_DEVICE constexpr pair_weights operator()(const pair_gram&) const noexcept { return {1, 1}; }
};

}  // namespace adasum::rules
