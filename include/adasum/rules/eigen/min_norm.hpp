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

namespace adasum::rules {

/// The shortest convex combination of the gradients (MGDA): c = argmin cᵀGc, c ≥ 0, Σc = 1. Every gradient has a
/// non-negative inner product with the result, so that a step along it worsens none of the ranks' losses.
///
/// Source: Désidéri, "Multiple-gradient descent algorithm (MGDA) for multiobjective optimization", C. R. Acad. Sci.
/// Paris 350 (2012). Solved exactly, but for rounding, by the active-set method of Wolfe, "Finding the nearest point in
/// a polytope", Mathematical Programming 11 (1976): to a duality gap of `tolerance` times the largest squared norm.
/// Needs Eigen.
struct min_norm {
  static constexpr std::string_view name = "min_norm";

  double tolerance = 1e-13;

  void operator()(gram_view g, std::span<double> c) const {
    const auto n = g.size();
    std::size_t shortest = 0;
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (g(i, i) < g(shortest, shortest)) shortest = i;
      largest = std::max(largest, g(i, i));
    }
    std::ranges::fill(c, 0.0);
    c[shortest] = 1;
    std::vector<std::size_t> active{shortest};
    // Each round shortens the result, so no active set comes twice; rounding could still let two take turns.
    for (std::size_t round = 0; round < 100 + 10 * n; ++round) {
      std::size_t next = 0;
      double least = 0, value = 0;
      for (std::size_t i = 0; i < n; ++i) {
        double slope = 0;  // gᵢ · result
        for (const auto j : active) slope += g(i, j) * c[j];
        value += c[i] * slope;
        if (i == 0 || slope < least) least = slope, next = i;
      }
      if (value - least <= tolerance * largest || std::ranges::find(active, next) != active.end()) return;
      active.push_back(next);
      minimize_over(active, g, largest, c);
    }
  }

 private:
  /// Moves c to the shortest point of the active gradients' hull, and forgets those that it does not need.
  static void minimize_over(std::vector<std::size_t>& active, gram_view g, double largest, std::span<double> c) {
    while (true) {
      const Eigen::VectorXd y = affine_minimum(active, g, largest);
      // From c towards y, until a weight would become negative.
      double step = 1;
      std::size_t dropped = active.size();
      for (std::size_t k = 0; k < active.size(); ++k) {
        const double from = c[active[k]], to = y(static_cast<Eigen::Index>(k));
        if (to > 0) continue;
        const double limit = from > 0 ? from / (from - to) : 0;
        if (limit < step || dropped == active.size()) step = std::min(step, limit), dropped = k;
      }
      for (std::size_t k = 0; k < active.size(); ++k) {
        double& weight = c[active[k]];
        weight += step * (y(static_cast<Eigen::Index>(k)) - weight);
      }
      if (dropped == active.size()) return;
      c[active[dropped]] = 0;
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(dropped));
    }
  }

  /// argmin yᵀGy over Σy = 1, on the active rows: y ∝ (G + s·11ᵀ)⁻¹ 1 for any s > 0, which makes a Gram matrix of
  /// affinely independent gradients regular.
  static Eigen::VectorXd affine_minimum(const std::vector<std::size_t>& active, gram_view g, double s) {
    const auto m = static_cast<Eigen::Index>(active.size());
    Eigen::MatrixXd shifted(m, m);
    for (Eigen::Index i = 0; i < m; ++i)
      for (Eigen::Index j = 0; j < m; ++j)
        shifted(i, j) = g(active[static_cast<std::size_t>(i)], active[static_cast<std::size_t>(j)]) + s;
    const Eigen::VectorXd y = shifted.ldlt().solve(Eigen::VectorXd::Ones(m));
    return y / y.sum();
  }
};

}  // namespace adasum::rules
