// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "alpha_fair.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// Nash's bargain between the gradients: the direction r for which Π gᵢ·r is greatest, ‖r‖ being given:
///
///     c = α > 0 with Gα = 1/α (entry by entry);   result = Σ αᵢ gᵢ, of length √n
///
/// How long gradients are makes no difference. Every gradient has a positive inner product with the result. Source: Navon
/// et al., "Multi-Task Learning as a Bargaining Game", ICML 2022, section 3.2, claim 3.1 (Nash-MTL). The authors' code, and
/// TorchJD, solve for α by a sequence of convex programs, to about 1e-3, and then shorten the result to length 1
/// (max_norm). Here it is solved to rounding by Newton's method (alpha_fair); `scale` says how long the result is.
///
/// Where no vector has a positive inner product with every gradient (opposed ones, for example), there is no solution: the
/// mean is taken, and counted. A zero gradient has weight 0. The relative error of the weights is about 1e-15 times the
/// condition number of the gradients' directions. O(n³) for each Newton step. Needs Eigen.
struct nash_mtl {
  static constexpr std::string_view name = "nash_mtl";
  static constexpr inner_products needs = inner_products::accurate;

  /// How long the result is.
  enum class scaling {
    none,       ///< as in the paper: the result has the length √n, n being the number of gradients that are not zero
    mean_norm,  ///< the length (1/n) Σ‖gᵢ‖: it follows the gradients', for learning rates tuned for the mean
  };

  scaling scale = scaling::none;  ///< how long the result is
  bool per_segment = false;   ///< weights for each segment by itself, instead of one set for the whole model
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  bool whole_model() const { return !per_segment; }
  int degree() const { return scale == scaling::none ? 0 : 1; }
  auto parameters() const { return parameter_list(scale, per_segment); }

  void operator()(gram_view g, std::span<double> weights) {
    const scaled_gram scaled(g);
    const double length = scale == scaling::none ? 0 : scaled.lengths.mean();
    if (!fair_weights(scaled, 1, length, weights)) ++fallbacks;
  }
};

}  // namespace adasum::rules
