// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "dual_cone.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// The mean of the gradients after each has been projected onto the cone of vectors that harm no gradient:
///
///     c = (1/n) Σᵢ argmin vᵀGv, v ≥ eᵢ
///
/// No gradient has a negative inner product with the result, so that a step along it worsens none of the ranks' losses;
/// where no two gradients are opposed, it is the mean. Source: Quinton and Rey, "Jacobian Descent for Multi-Objective
/// Optimization", arXiv 2406.16232, sections 2.2 and 3 (UPGrad).
///
/// TorchJD, the authors' library, divides G by its trace, adds 1e-4 to the diagonal (reg_eps), and takes the mean where
/// the trace is below 1e-4 (norm_eps). Here nothing is added, so that gradients much shorter than others count in full, and
/// the result scales with the gradients. With both at 0, the results are the same.
///
/// A zero gradient takes no part and has the weight 1/n. Opposed gradients (g and -g) cancel. How the minimum is found,
/// and how gradients that depend on each other are recognised: see dual_cone. The error of the result, relative to
/// Σ cᵢ‖gᵢ‖, is about 1e-15 times the condition number of the directions of opposed gradients. O(n⁴), O(n³) where few
/// are opposed. Needs Eigen.
struct upgrad {
  static constexpr std::string_view name = "upgrad";
  static constexpr inner_products needs = inner_products::accurate;

  bool per_segment = false;  ///< weights for each segment by itself, instead of one set for the whole model

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(per_segment); }

  void operator()(gram_view g, std::span<double> weights) const {
    const scaled_gram scaled(g);
    const auto n = scaled.lengths.size();
    dual_cone cone(scaled.directions);
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(n);  // Σ of the projections, as weights of the directions
    for (Eigen::Index i = 0; i < n; ++i)
      if (scaled.lengths(i) > 0) sum += scaled.lengths(i) * cone.shortest_above(Eigen::VectorXd::Unit(n, i));
    for (Eigen::Index i = 0; i < n; ++i)
      weights[static_cast<std::size_t>(i)] =
          (scaled.lengths(i) > 0 ? sum(i) / scaled.lengths(i) : 1) / static_cast<double>(n);
  }
};

}  // namespace adasum::rules
