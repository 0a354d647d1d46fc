// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "alpha_fair.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// The direction in which the improvements gᵢ·r are shared α-fairly, with the average length of the gradients:
///
///     v > 0 with Gv = v^(-1/α) (entry by entry);   result = s Σ vᵢ gᵢ, of length (1/n) Σ‖gᵢ‖
///
/// α → 0 gives the sum's direction, α = 1 that of nash_mtl, and the greater α is, the more the least improvement
/// counts. Every gradient has a positive inner product with the result. Source: Ban and Ji, "Fair Resource Allocation
/// in Multi-Task Learning", ICML 2024, section 4.2, equation 4 (FairGrad).
///
/// The published result, s = 1, grows as the (1-α)/(1+α)-th power of the gradients' lengths; the authors' code then
/// shortens it to length 1 (max_norm). Here the length follows the gradients', for learning rates tuned for the mean.
/// The authors solve for v by least squares, to about 1e-8; here it is solved to rounding by Newton's method
/// (rules::alpha_fair).
///
/// Where no vector has a positive inner product with every gradient (opposed ones, for example), there is no solution: the
/// mean is taken, and counted. The same is done where lengths are so different that their powers leave the range of
/// double. A zero gradient has weight 0. The relative error of the weights is about 1e-15 times the condition number of
/// the gradients' directions. O(n³) for each Newton step. Needs Eigen.
struct fairgrad {
  static constexpr std::string_view name = "fairgrad";
  static constexpr inner_products needs = inner_products::accurate;

  double alpha = 2;           ///< α > 0
  bool per_segment = false;   ///< weights for each segment by itself, instead of one set for the whole model
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(alpha, per_segment); }

  void operator()(gram_view g, std::span<double> weights) {
    const scaled_gram scaled(g);
    if (!fair_weights(scaled, alpha, scaled.lengths.mean(), weights)) ++fallbacks;
  }
};

}  // namespace adasum::rules
