// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The shortest convex combination of the gradients (MGDA): c = argmin cᵀGc, c ≥ 0, Σc = 1. Every gradient has a
/// non-negative inner product with the result, so that a step along it worsens none of the ranks' losses.
///
/// Source: Désidéri, "Multiple-gradient descent algorithm (MGDA) for multiobjective optimization", C. R. Acad. Sci. Paris
/// 350 (2012). Solved by the Frank-Wolfe method with away steps (Lacoste-Julien and Jaggi, NeurIPS 2015, algorithm 1),
/// to a duality gap of `tolerance` times the largest squared norm.
struct min_norm {
  static constexpr std::string_view name = "min_norm";

  double tolerance = 1e-12;
  std::size_t max_iterations = 10000;

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
    for (std::size_t iteration = 0; iteration < max_iterations; ++iteration) {
      // Half the gradient of cᵀGc, and its extreme entries: over all vertices, and over those in use.
      const auto slope = [&](std::size_t i) {
        double sum = 0;
        for (std::size_t j = 0; j < n; ++j) sum += g(i, j) * c[j];
        return sum;
      };
      std::size_t towards = 0, away = shortest;
      double least = slope(0), most = -1, value = 0;
      bool found = false;
      for (std::size_t i = 0; i < n; ++i) {
        const double s = slope(i);
        value += c[i] * s;
        if (s < least) least = s, towards = i;
        if (c[i] > 0 && (!found || s > most)) most = s, away = i, found = true;
      }
      if (value - least <= tolerance * largest) break;
      if (value - least >= most - value) {  // c ← c + γ (e_towards - c)
        const double curvature = value - 2 * least + g(towards, towards);
        const double step = curvature > 0 ? std::min(1.0, (value - least) / curvature) : 1;
        for (double& x : c) x *= 1 - step;
        c[towards] += step;
      } else {  // c ← c + γ (c - e_away), until the weight of e_away is gone
        const double curvature = value - 2 * most + g(away, away);
        const double limit = c[away] / (1 - c[away]);
        const double step = curvature > 0 ? std::min(limit, (most - value) / curvature) : limit;
        for (double& x : c) x *= 1 + step;
        c[away] = step == limit ? 0 : c[away] - step;
      }
    }
  }
};

}  // namespace adasum::rules
