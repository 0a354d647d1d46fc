// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// Each gradient's distance from a common centre is clipped, again and again. Ranks may send anything, even Inf and
/// NaN, as long as fewer than half of them do: a gradient that holds these is left out.
///
///     z ← z + (1/n) Σ (gᵢ - z) min(1, τ/‖gᵢ - z‖),   from z = 0, `iterations` times;   τ = radius · median ‖gᵢ‖
///
/// Source: Karimireddy, He and Jaggi, "Learning from History for Byzantine Robust Optimization", ICML 2021, section 4,
/// algorithm 1. There, z starts from the result of the step before; that is no combination of this step's gradients, which
/// is all that a rule can make, so here it starts from 0, and a few iterations take the place of history. (The mean
/// would not do as a start: a single rank can move it anywhere.) Give it the workers' momenta instead of their
/// gradients, as the paper does, where attacks build up over time. There, and in the library ByzFL, τ is a length; here
/// it is relative to the gradients, so that the result scales with them.
///
/// Where no distance is above τ, nothing is clipped, and the result is the mean. A zero gradient counts like any other.
/// Where half of the gradients are zero, so is the result. Distances come from differences of inner products; below
/// about 1e-7 of the gradients' lengths they count as 0. The error of the result, relative to the gradients, is a few
/// roundings. O(n²) for each iteration.
struct centred_clipping {
  static constexpr std::string_view name = "centred_clipping";
  static constexpr inner_products needs = inner_products::accurate;
  static constexpr bool leaves_out_nonfinite = true;

  double radius = 1;           ///< τ, relative to the median length (the lower of two)
  std::size_t iterations = 3;  ///< at least 1 is made; 1 in the paper
  bool per_segment = false;    ///< weights for each segment by itself, instead of one set for the whole model

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(radius, iterations, per_segment); }

  void operator()(gram_view g, std::span<double> weights) const;
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <vector>

#include "span_vector.hpp"

namespace adasum::rules {

ADASUM_INLINE void centred_clipping::operator()(gram_view g, std::span<double> weights) const {
  const auto n = g.size();
  const double limit = radius * median_length(g);
  span_vector z(g);
  std::vector<double> shares(n);
  for (std::size_t round = 0; round < std::max<std::size_t>(iterations, 1); ++round) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double distance = z.distance(i);
      sum += shares[i] = (distance > limit ? limit / distance : 1) / static_cast<double>(n);
    }
    z.multiply(1 - sum);
    for (std::size_t i = 0; i < n; ++i) z.add(shares[i], i);
  }
  std::copy(z.coefficients().begin(), z.coefficients().end(), weights.begin());
}

}  // namespace adasum::rules
#endif
