// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The direction whose inner products with all unit gradients are equal, with the length of the sum of the gradients'
/// projections onto it (ConFIG):
///
///     x = R⁺ 1,   u = Σ xᵢ gᵢ/‖gᵢ‖,   result = (Σ gᵢ·u) u / ‖u‖²,   G = D R D, D the gradients' lengths
///
/// Source: Liu, Chu and Thuerey, "ConFIG: Towards Conflict-free Training of Physics Informed Neural Networks",
/// arXiv 2408.11104, section 3, equations 2 and 3, with equal weights. (The pseudo-inverse of the matrix U of unit
/// gradients is Uᵀ(U Uᵀ)⁺, U Uᵀ = R.) Equal gradients give their sum: the result is about n times as long as the mean's.
///
/// For dependent gradients, 1 need not lie in the range of R, and u is the best in the sense of least squares. Where no
/// more than `guard` of it does, ‖R R⁺ 1‖ ≤ guard·√n (as for g and -g), there is no such direction: the mean is taken,
/// and counted. A zero gradient has weight 0. The error of u, relative to it, is about 1e-15 times the condition number
/// of R, its zero eigenvalues left out. O(n³). Needs Eigen.
struct conflict_free {
  static constexpr std::string_view name = "conflict_free";
  static constexpr inner_products needs = inner_products::accurate;

  double guard = 1e-6;        ///< the mean is taken where ‖R R⁺ 1‖ ≤ guard·√n
  bool per_segment = false;   ///< weights for each segment by itself, instead of one set for the whole model
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(guard, per_segment); }

  void operator()(gram_view g, std::span<double> weights) {
    const scaled_gram scaled(g);
    const auto n = scaled.lengths.size();
    for (double& weight : weights) weight = 1 / static_cast<double>(n);
    if (scaled.lengths.maxCoeff() == 0) return;
    const spectrum eigen(scaled.directions);
    Eigen::VectorXd ones = Eigen::VectorXd::Ones(n);
    for (Eigen::Index i = 0; i < n; ++i)
      if (scaled.lengths(i) == 0) ones(i) = 0;
    // R R⁺ 1, the inner products of u with the unit gradients: 1 where those are independent.
    const Eigen::VectorXd slopes = eigen.apply([](double) { return 1; }, ones);
    if (!(slopes.norm() > guard * ones.norm())) {
      ++fallbacks;
      return;
    }
    const Eigen::VectorXd x = eigen.apply([](double lambda) { return 1 / lambda; }, ones);
    const double longest = scaled.lengths.maxCoeff();
    const double factor = (scaled.lengths / longest).dot(slopes) / x.dot(ones);
    for (Eigen::Index i = 0; i < n; ++i)
      weights[static_cast<std::size_t>(i)] = scaled.lengths(i) > 0 ? factor * x(i) * (longest / scaled.lengths(i)) : 0;
  }
};

}  // namespace adasum::rules
