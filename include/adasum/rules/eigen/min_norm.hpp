// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../../core/gram.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// The shortest convex combination of the gradients (MGDA): c = argmin cᵀGc, c ≥ 0, Σc = 1. Every gradient has a
/// non-negative inner product with the result, so that a step along it worsens none of the ranks' losses.
///
/// Source: Désidéri, "Multiple-gradient descent algorithm (MGDA) for multiobjective optimization", C. R. Acad. Sci.
/// Paris 350 (2012). Solved exactly, but for rounding, by the active-set method of Wolfe, "Finding the nearest point in
/// a polytope", Mathematical Programming 11 (1976), until gᵢ·r ≥ r·r - tolerance·‖gᵢ‖·Σ cⱼ‖gⱼ‖ for every i, r being the
/// result: each gradient is judged by its own length, however short it is beside others.
///
/// Where a gradient is zero, so is the result. Dependent gradients need no care: the result is unique, if not its weights.
/// Its error, relative to Σ cᵢ‖gᵢ‖, is at most √(tolerance + n·1e-15), which is 3e-7 by default, and at most four times
/// the square of that times the condition number of the gradients' directions. Needs Eigen.
struct min_norm {
  static constexpr std::string_view name = "min_norm";
  static constexpr inner_products needs = inner_products::accurate;

  double tolerance = 1e-13;  ///< how exact the minimum is

  auto parameters() const { return parameter_list(tolerance); }

  void operator()(gram_view g, std::span<double> c) const {
    const auto n = g.size();
    const scaled_gram scaled(g);
    Eigen::Index shortest = 0;
    scaled.lengths.minCoeff(&shortest);
    std::ranges::fill(c, 0.0);
    c[static_cast<std::size_t>(shortest)] = 1;
    if (scaled.lengths(shortest) == 0) return;
    // Weights of the directions, times the shortest length: xᵢ = cᵢ‖gᵢ‖ / ‖shortest‖.
    const Eigen::VectorXd ratios = scaled.lengths(shortest) * scaled.lengths.cwiseInverse();  // c = x·ratios
    Eigen::VectorXd x = Eigen::VectorXd::Zero(scaled.lengths.size());
    x(shortest) = 1;
    std::vector<Eigen::Index> active{shortest};
    // Each round shortens the result, so no active set comes twice; rounding could still let two take turns.
    for (std::size_t round = 0; round < 100 + 10 * n; ++round) {
      const Eigen::VectorXd slopes = scaled.directions * x;  // of each direction with the result
      // gᵢ·r - r·r, over ‖gᵢ‖.
      const Eigen::VectorXd gaps = slopes - x.dot(slopes) * ratios;
      Eigen::Index next = 0;
      if (gaps.minCoeff(&next) >= -tolerance * x.sum()) break;
      if (std::ranges::find(active, next) != active.end()) break;
      active.push_back(next);
      minimize_over(active, scaled.directions, ratios, x);
    }
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      sum += c[i] = x(static_cast<Eigen::Index>(i)) * ratios(static_cast<Eigen::Index>(i));
    for (double& weight : c) weight /= sum;
  }

 private:
  /// Moves x to the shortest point of the active gradients' hull, and forgets those that it does not need.
  static void minimize_over(std::vector<Eigen::Index>& active, const Eigen::MatrixXd& directions,
                            const Eigen::VectorXd& ratios, Eigen::VectorXd& x) {
    while (true) {
      const Eigen::VectorXd y = affine_minimum(active, directions, ratios);
      // From x towards y, until a weight would become negative.
      double step = 1;
      std::size_t dropped = active.size();
      for (std::size_t k = 0; k < active.size(); ++k) {
        const double from = x(active[k]), to = y(static_cast<Eigen::Index>(k));
        if (to > 0) continue;
        const double limit = from > 0 ? from / (from - to) : 0;
        if (limit < step || dropped == active.size()) step = std::min(step, limit), dropped = k;
      }
      for (std::size_t k = 0; k < active.size(); ++k) {
        double& weight = x(active[k]);
        weight += step * (y(static_cast<Eigen::Index>(k)) - weight);
      }
      if (dropped == active.size()) return;
      x(active[dropped]) = 0;
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(dropped));
    }
  }

  /// argmin yᵀRy over e·y = 1, on the active rows, e being the ratios: y ∝ (R + êêᵀ)⁻¹ ê, ê = e/‖e‖. Adding êêᵀ makes
  /// the matrix regular where the gradients are affinely independent.
  static Eigen::VectorXd affine_minimum(const std::vector<Eigen::Index>& active, const Eigen::MatrixXd& directions,
                                        const Eigen::VectorXd& ratios) {
    const Eigen::VectorXd e = ratios(active), unit = e.normalized();
    const Eigen::MatrixXd shifted = directions(active, active) + unit * unit.transpose();
    const Eigen::VectorXd y = shifted.ldlt().solve(unit);
    return y / e.dot(y);
  }
};

}  // namespace adasum::rules
