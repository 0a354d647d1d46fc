// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The point whose distances to all gradients have the least sum. Ranks may send anything, even Inf and NaN, as long as
/// fewer than half of them do: a gradient that holds these is left out.
///
///     z ← Σ βᵢ gᵢ / Σ βᵢ,   βᵢ = 1 / max(ν, ‖gᵢ - z‖),   from z = 0, `iterations` times (smoothed Weiszfeld)
///     ν = smoothing · median ‖gᵢ‖
///
/// Source: Pillutla, Kakade and Harchaoui, "Robust Aggregation for Federated Learning" (RFA), arXiv 1912.13445, section 3,
/// algorithm 2, with equal weights. There, and in the library ByzFL, ν is a length; here it is relative to the gradients, so
/// that the result scales with them. The authors take 3 iterations, in each of which ranks would send vectors; here an
/// iteration sends nothing, and the iterations end early once z moves by no more than 1e-9 of the median length. z
/// starts from 0, and not from the mean, which a single rank can move anywhere.
///
/// Where half of the gradients are zero, so is the result. Equal or opposed gradients need no care, nor do dependent
/// ones. Distances come from inner products: below about 1e-7 of the gradients' lengths they count as ν. Since ν is
/// relative to lengths, the result is the mean for gradients whose common part is 1e6 times as long as what they differ
/// by; multi_krum compares distances themselves. The error of the result, relative to the gradients' lengths, is a few
/// roundings times n/(r ν) for each iteration with a gradient at the relative distance r: about 1e-8 next to a
/// gradient. O(n²) for each iteration.
struct geometric_median {
  static constexpr std::string_view name = "geometric_median";
  static constexpr inner_products needs = inner_products::accurate;
  static constexpr bool leaves_out_nonfinite = true;

  double smoothing = 1e-6;       ///< ν, relative to the median length (the lower of two); above 0
  std::size_t iterations = 100;  ///< at most; at least 1 is made
  bool per_segment = false;      ///< weights for each segment by itself, instead of one set for the whole model

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(smoothing, iterations, per_segment); }

  void operator()(gram_view g, std::span<double> weights) const;

 private:
  /// The mean of the gradients that are zero.
  static void take_zeros(gram_view g, std::span<double> weights);
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <vector>

#include "span_vector.hpp"

namespace adasum::rules {

ADASUM_INLINE void geometric_median::operator()(gram_view g, std::span<double> weights) const {
  const auto n = g.size();
  const double median = median_length(g), least = smoothing * median;
  if (median == 0) return take_zeros(g, weights);
  span_vector z(g);
  std::vector<double> beta(n);
  for (std::size_t round = 0; round < std::max<std::size_t>(iterations, 1); ++round) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += beta[i] = 1 / std::max(least, z.distance(i));
    span_vector next(g), move(g);
    for (std::size_t i = 0; i < n; ++i) next.add(beta[i] / sum, i);
    for (std::size_t i = 0; i < n; ++i) move.add(next.coefficients()[i] - z.coefficients()[i], i);
    z = next;
    if (round > 0 && move.length() <= 1e-9 * median) break;
  }
  std::copy(z.coefficients().begin(), z.coefficients().end(), weights.begin());
}

ADASUM_INLINE void geometric_median::take_zeros(gram_view g, std::span<double> weights) {
  double zeros = 0;
  for (std::size_t i = 0; i < g.size(); ++i) zeros += g(i, i) == 0;
  for (std::size_t i = 0; i < g.size(); ++i) weights[i] = g(i, i) == 0 ? 1 / zeros : 0;
}

}  // namespace adasum::rules
#endif
