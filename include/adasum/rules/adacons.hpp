// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "../core/float_bits.hpp"
#include "../core/gram.hpp"

namespace adasum::rules {

/// Adaptive consensus: gradients that agree with the mean ḡ weigh more.
///
///     1.  αᵢ = gᵢ·ḡ / (‖gᵢ‖ + ε)
///     2.  α sorted ascending; m ← β m + (1 - β) sorted(α), m = sorted(α) at first; α of k-th rank ← m_k
///     3.  α ← α / Σα
///     4.  cᵢ = s·αᵢ / (‖gᵢ‖ + ε)
///
/// Source: Choukroun et al., "Adaptive Consensus Gradients Aggregation for Scaled Distributed Training",
/// arXiv 2411.03742, section 3. It mixes unit vectors; `scale` says how long the result is. Where the gradients do
/// not agree on a direction (Σα ≤ guard·Σ|α|), step 3 would enlarge or flip the result: the mean is taken, and counted.
struct adacons {
  static constexpr std::string_view name = "adacons";

  enum class scaling {
    none,       ///< s = 1: the result has the length of a combination of unit vectors
    mean_norm,  ///< s = (1/n) Σ‖gᵢ‖: the length follows the gradients', for learning rates tuned for the mean
  };

  double momentum = 0;    ///< β, in [0, 1); 0.99 in the paper's regression study
  double epsilon = 1e-8;  ///< where squares leave the range of double, it is compared with norms that were rescaled
  scaling scale = scaling::none;
  bool per_segment = false;  ///< weights for each segment by itself, instead of one set for the whole model
  double guard = 1e-6;

  /// State: m of each segment (one for the whole model). Save and restore it with the optimizer's.
  std::vector<std::vector<double>> sorted_average{};
  /// How often the mean was taken instead.
  std::size_t fallbacks = 0;

  bool whole_model() const { return !per_segment; }
  int degree() const { return scale == scaling::none ? 0 : 1; }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment) {
    const auto n = g.size();
    const auto count = static_cast<double>(n);
    double mean_norm = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double dot = 0;
      for (std::size_t j = 0; j < n; ++j) dot += g(i, j);
      weights[i] = dot / count / (norm(g, i) + epsilon);
      mean_norm += norm(g, i) / count;
    }
    smooth(weights, segment);

    double sum = 0, absolute = 0;
    for (const double alpha : weights) sum += alpha, absolute += std::abs(alpha);
    if (!detail::is_finite(sum) || sum <= guard * absolute) {
      ++fallbacks;
      std::ranges::fill(weights, 1 / count);
      return;
    }
    const double s = scale == scaling::mean_norm ? mean_norm : 1;
    for (std::size_t i = 0; i < n; ++i) weights[i] *= s / sum / (norm(g, i) + epsilon);
  }

 private:
  static double norm(gram_view g, std::size_t i) { return std::sqrt(g(i, i)); }

  /// Step 2. The average starts anew when the number of gradients changes.
  void smooth(std::span<double> alpha, std::size_t segment) {
    if (momentum == 0) return;
    if (sorted_average.size() <= segment) sorted_average.resize(segment + 1);
    auto& average = sorted_average[segment];
    std::vector<std::size_t> order(alpha.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return alpha[i]; });
    const bool first = average.size() != alpha.size();
    average.resize(alpha.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      double& a = alpha[order[k]];
      a = average[k] = first ? a : momentum * average[k] + (1 - momentum) * a;
    }
  }
};

}  // namespace adasum::rules
