// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "../core/gram.hpp"

namespace adasum::rules {

/// The mean of the gradients that agree with the mean of those before them (GAF):
///
///     z = g₁;  for i = 2, …, n:  if 1 - cos(z, gᵢ) ≤ τ, gᵢ is taken into the mean z
///     result = z, or 0 if nothing was taken into g₁
///
/// Source: Chaubard, Eddy and Kochenderfer, "Beyond Gradient Averaging in Parallel Optimization: Improved Robustness through
/// Gradient Agreement Filtering", arXiv 2412.18052, section 3, algorithm 1. In their code, z ← (z + gᵢ)/2, so that late
/// gradients count more: `averaging` says which of the two is used. Where no gradient agrees with the first, they leave
/// the step out; here the result is 0, and `skipped` counts it. A single gradient is the result.
///
/// Zero gradients are passed over, even the first. So is one that comes when z has vanished (span_vector::length).
/// Weights jump where a cosine passes 1 - τ; cosines are known to about 1e-15 of Σ|cᵢ|‖gᵢ‖ / ‖z‖. The result depends on
/// the order of the ranks. O(n²).
struct gradient_agreement_filtering {
  static constexpr std::string_view name = "gradient_agreement_filtering";

  /// What is made of the gradients that agree.
  enum class averages {
    mean,    ///< each gradient that is taken counts alike
    halves,  ///< z ← (z + gᵢ)/2, as in the authors' code
  };

  double threshold = 1;                 ///< τ, in [0, 2]; the authors recommend 0.9 to 1
  averages averaging = averages::mean;  ///< what is made of the gradients that agree
  bool per_segment = false;             ///< weights for each segment by itself, instead of one set for the whole model
  std::size_t skipped = 0;              ///< how often the result was 0 because nothing agreed with the first gradient

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(threshold, averaging, per_segment); }

  void operator()(gram_view g, std::span<double> weights);

 private:
  bool agrees(const class span_vector& z, gram_view g, std::size_t i) const;
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <cmath>

#include "span_vector.hpp"

namespace adasum::rules {

ADASUM_INLINE void gradient_agreement_filtering::operator()(gram_view g, std::span<double> weights) {
  const auto n = g.size();
  span_vector z(g);
  std::size_t taken = 0, nonzero = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (g(i, i) == 0) continue;
    ++nonzero;
    if (taken > 0 && !agrees(z, g, i)) continue;
    ++taken;
    const double share = taken == 1 ? 1 : averaging == averages::mean ? 1 / static_cast<double>(taken) : 0.5;
    z.multiply(1 - share);
    z.add(share, i);
  }
  const bool skip = taken == 1 && nonzero > 1;
  if (skip) ++skipped;
  for (std::size_t i = 0; i < n; ++i) weights[i] = skip ? 0 : z.coefficients()[i];
}

ADASUM_INLINE bool gradient_agreement_filtering::agrees(const span_vector& z, gram_view g, std::size_t i) const {
  const double length = z.length();
  return length > 0 && 1 - z.dot(i) / length / std::sqrt(g(i, i)) <= threshold;
}

}  // namespace adasum::rules
#endif
