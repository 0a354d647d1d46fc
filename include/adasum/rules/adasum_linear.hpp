// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <concepts>
#include <string_view>

#include "../core/concepts.hpp"
#include "adasum.hpp"

namespace adasum::rules {

/// Adaptive summation as a left fold, ((g₀ ⊕ g₁) ⊕ g₂) ⊕ …, where a ⊕ b is rules::adasum of two vectors. It is what
/// folding in one gradient at a time gives (adasum::accumulator). Source, guards and accuracy: as rules::adasum, with the
/// sums g₀ ⊕ g₁ ⊕ … for nodes. No parameters.
struct adasum_linear : adasum {
  static constexpr std::string_view name = "adasum_linear";
};

}  // namespace adasum::rules

/// @cond internal
template <std::derived_from<adasum::rules::adasum_linear> Rule>
inline constexpr bool adasum::detail::is_left_fold<Rule> = true;
/// @endcond
