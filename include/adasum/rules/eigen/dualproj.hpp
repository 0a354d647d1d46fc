// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "dual_cone.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// The vector nearest to the mean among those that harm no gradient: c = argmin vᵀGv, v ≥ 1/n.
///
/// No gradient has a negative inner product with the result, so that a step along it worsens none of the ranks' losses;
/// where the mean has that property, it is the result. Source: Lopez-Paz and Ranzato, "Gradient Episodic Memory for
/// Continual Learning", NIPS 2017, section 3, equation 11, with the mean for the gradient of the present task (the rule
/// that Quinton and Rey, arXiv 2406.16232, and the library TorchJD call DualProj).
///
/// TorchJD adds 1e-4 of its trace to the diagonal of G (reg_eps), and takes the mean where the trace is below 1e-4
/// (norm_eps); here the result scales with the gradients, however short. With both at 0, the results are the same.
///
/// A zero gradient has the weight 1/n. Opposed gradients (g and -g) cancel. How the minimum is found, and how gradients
/// that depend on each other are recognised: see dual_cone. The error of the result, relative to Σ cᵢ‖gᵢ‖, is about
/// 1e-15 times the condition number of the directions of opposed gradients. O(n³). Needs Eigen.
struct dualproj {
  static constexpr std::string_view name = "dualproj";
  static constexpr inner_products needs = inner_products::accurate;

  bool per_segment = false;  ///< weights for each segment by itself, instead of one set for the whole model

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(per_segment); }

  void operator()(gram_view g, std::span<double> weights) const {
    const scaled_gram scaled(g);
    const double longest = scaled.lengths.maxCoeff(), count = static_cast<double>(g.size());
    for (double& weight : weights) weight = 1 / count;
    if (longest == 0) return;
    const Eigen::VectorXd v = dual_cone(scaled.directions).shortest_above(scaled.lengths / longest);
    for (Eigen::Index i = 0; i < v.size(); ++i)
      if (scaled.lengths(i) > 0) weights[static_cast<std::size_t>(i)] = v(i) * longest / scaled.lengths(i) / count;
  }
};

}  // namespace adasum::rules
