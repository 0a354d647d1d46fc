// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// Adaptive summation: (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b.
///
/// It gives the sum of orthogonal vectors, and the arithmetic mean of collinear ones. It is 1-homogeneous and symmetric, but
/// not associative. A zero vector has no effect. Source: Maleki et al., "Scaling Distributed Training with Adaptive
/// Summation", MLSys 2021 (arXiv 2006.02924), section 3; n vectors along the tree of tree_order.hpp. No parameters.
///
/// The error of the result, relative to Σ|cᵢ|‖gᵢ‖, is about 1e-15 times the sum of Σ|cᵢ|‖gᵢ‖/‖node‖ over the nodes of the
/// tree, and grows with the ratio of lengths where a node is shorter than its partner. A node that is shorter than 2⁻¹² of
/// its terms is combined from the vectors themselves, in double (detail/numerics/recombine.hpp).
struct adasum {
  static constexpr std::string_view name = "adasum";

  ADASUM_HOST_DEVICE constexpr pair_weights operator()(const pair_gram& g) const noexcept {
    return {g.aa > 0 ? 1 - g.ab / g.aa / 2 : 1, g.bb > 0 ? 1 - g.ab / g.bb / 2 : 1};
  }
};

}  // namespace adasum::rules
