// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

#include "adasum.hpp"

namespace adasum::rules {

/// Adaptive summation in the linear order ((g₀ ⊕ g₁) ⊕ g₂) ⊕ …, a ⊕ b being rules::adasum of two. What one gets by
/// folding gradients in one at a time (adasum::accumulator). Maleki et al., MLSys 2021, section 3.
struct adasum_linear : adasum {
  static constexpr std::string_view name = "adasum_linear";
  static constexpr bool linear_order = true;
};

}  // namespace adasum::rules
