// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../core/gram.hpp"

namespace adasum::rules {

/// Adaptive consensus: gradients that agree with the mean ḡ weigh more.
///
///     1.  αᵢ = gᵢ·ḡ / (‖gᵢ‖ + ε ν),   ν = (1/n) Σ‖gᵢ‖
///     2.  α sorted ascending; m ← β m + (1 - β) sorted(α), m = sorted(α) at first; α of k-th rank ← m_k
///     3.  α ← α / Σα
///     4.  cᵢ = s·αᵢ / (‖gᵢ‖ + ε ν)
///
/// Source: Choukroun et al., "Adaptive Consensus Gradients Aggregation for Scaled Distributed Training",
/// arXiv 2411.03742, section 3. It mixes unit vectors; `scale` says how long the result is. Where the gradients do
/// not agree on a direction (Σα ≤ guard·Σ|α|), step 3 would enlarge or flip the result: the mean is taken, and counted.
///
/// Two things differ from the code that the authors published. Their ε is not multiplied by ν, so what it does depends on
/// the gradients' length; for norms near 1 the results are the same. And in step 2, their code gives the averages back
/// by the permutation that sorts α, and not by its inverse, so that from 3 gradients on most receive another's:
/// `unsorting` says which of the two is used.
///
/// A zero gradient has αᵢ = 0; if all are zero, the mean is taken. The error of the result, relative to Σ|cᵢ|‖gᵢ‖, is about
/// n·1e-15 times Σ|α|/Σα, which the guard holds below 1/guard.
struct adacons {
  static constexpr std::string_view name = "adacons";

  /// How long the result is.
  enum class scaling {
    none,       ///< s = 1: the result has the length of a combination of unit vectors
    mean_norm,  ///< s = (1/n) Σ‖gᵢ‖: the length follows the gradients', for learning rates tuned for the mean
  };

  /// How the averages of step 2 are given back to the gradients.
  enum class unsort {
    inverse,      ///< the k-th smallest α becomes m_k, as in the paper
    as_published  ///< as in the authors' code: α of gradient k becomes m_j, j being the gradient of the k-th smallest α
  };

  double momentum = 0;                 ///< β, in [0, 1); 0.99 in the paper's regression study
  double epsilon = 1e-8;               ///< ε, relative to the mean norm
  scaling scale = scaling::none;       ///< how long the result is
  bool per_segment = false;            ///< weights for each segment by itself, instead of one set for the whole model
  double guard = 1e-6;                 ///< the mean is taken where Σα ≤ guard·Σ|α|
  unsort unsorting = unsort::inverse;  ///< how averages are given back

  /// State: m of each segment (one for the whole model). Save and restore it with the optimizer's.
  std::vector<std::vector<double>> sorted_average{};
  /// How often the mean was taken instead.
  std::size_t fallbacks = 0;

  bool whole_model() const { return !per_segment; }
  int degree() const { return scale == scaling::none ? 0 : 1; }
  auto parameters() const { return parameter_list(momentum, epsilon, scale, per_segment, guard, unsorting); }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment);

 private:
  /// Step 2. The average starts anew when the number of gradients changes.
  void smooth(std::span<double> alpha, std::size_t segment);
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <cmath>

#include "../core/scalar.hpp"
#include "orders.hpp"

namespace adasum::rules {

ADASUM_INLINE void adacons::operator()(gram_view g, std::span<double> weights, std::size_t segment) {
  const auto n = g.size();
  const auto count = static_cast<double>(n);
  double mean_norm = 0;
  const auto norm = [&](std::size_t i) { return std::sqrt(g(i, i)); };
  for (std::size_t i = 0; i < n; ++i) mean_norm += norm(i) / count;
  const double least = epsilon * mean_norm;
  for (std::size_t i = 0; i < n; ++i) {
    double row_sum = 0;
    for (std::size_t j = 0; j < n; ++j) row_sum += g(i, j);
    weights[i] = row_sum / count / (norm(i) + least);
  }
  smooth(weights, segment);

  double sum = 0, absolute = 0;
  for (const double alpha : weights) sum += alpha, absolute += std::abs(alpha);
  if (!detail::is_finite(sum) || sum <= guard * absolute) {
    ++fallbacks;
    std::fill(weights.begin(), weights.end(), 1 / count);
    return;
  }
  const double s = scale == scaling::mean_norm ? mean_norm : 1;
  for (std::size_t i = 0; i < n; ++i) weights[i] *= s / sum / (norm(i) + least);
}

ADASUM_INLINE void adacons::smooth(std::span<double> alpha, std::size_t segment) {
  if (momentum == 0 && unsorting == unsort::inverse) return;
  if (sorted_average.size() <= segment) sorted_average.resize(segment + 1);
  auto& average = sorted_average[segment];
  const auto order = ascending_order(alpha);
  const bool first = average.size() != alpha.size();
  average.resize(alpha.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double sorted = alpha[order[k]];
    average[k] = first ? sorted : momentum * average[k] + (1 - momentum) * sorted;
  }
  for (std::size_t k = 0; k < order.size(); ++k)
    if (unsorting == unsort::inverse)
      alpha[order[k]] = average[k];
    else
      alpha[k] = average[order[k]];
}

}  // namespace adasum::rules
#endif
