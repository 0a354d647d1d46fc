// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "../span_vector.hpp"
#include "min_norm.hpp"

namespace adasum::rules {

/// The vector within c‖ḡ‖ of the mean ḡ whose least inner product with a gradient is greatest (conflict-averse):
///
///     weights = 1/n + √φ/‖g_w‖·w,   g_w = Σ wᵢ gᵢ,   √φ = c‖ḡ‖,   w = argmin g_w·ḡ + √φ‖g_w‖, w ≥ 0, Σw = 1
///
/// Source: Liu et al., "Conflict-Averse Gradient Descent for Multi-task Learning", NeurIPS 2021, section 3.1 and
/// algorithm 1. The paper asks for c < 1, so that the fixed points remain those of the mean; c = 0 is the mean. A
/// single gradient is lengthened by the factor 1 + c: the authors' code divides by 1 + c²; here no division is made.
///
/// With ν = ‖g_w‖/√φ, w is the shortest convex combination of gᵢ + ν ḡ (min_norm); ‖g_w‖/ν falls as ν grows, so the ν
/// for which it is √φ is found by false position and halving, to 1e-14 of it.
///
/// Where g_w vanishes beside Σ wᵢ‖gᵢ‖ (no more than √(n·gram_accuracy) of it), the formula says nothing: the mean is
/// taken, and counted. (No vector in that range improves all losses there; TorchJD returns 0.) A zero gradient counts
/// in the mean alone. The error of the result, relative to Σ|cᵢ|‖gᵢ‖, is about 1e-13 times the condition number of the
/// directions of the gradients with wᵢ > 0. About 20 times the cost of min_norm. Needs Eigen.
struct cagrad {
  static constexpr std::string_view name = "cagrad";
  static constexpr inner_products needs = inner_products::accurate;

  double c = 0.5;             ///< the radius around the mean, relative to its length; 0.5 in the authors' code
  bool per_segment = false;   ///< weights for each segment by itself, instead of one set for the whole model
  std::size_t fallbacks = 0;  ///< how often the mean was taken instead

  bool whole_model() const { return !per_segment; }
  auto parameters() const { return parameter_list(c, per_segment); }

  void operator()(gram_view g, std::span<double> weights) {
    const auto n = static_cast<double>(g.size());
    const problem scaled(g, c);
    std::ranges::fill(weights, 1 / n);
    if (scaled.radius == 0) return;
    const auto w = scaled.solve();
    const double length = scaled.length_of(w);
    if (!(length > std::sqrt(n * gram_accuracy) * w.dot(scaled.lengths))) {
      ++fallbacks;
      return;
    }
    for (Eigen::Index i = 0; i < w.size(); ++i) weights[scaled.of_all(i)] += scaled.radius / length * w(i);
  }

 private:
  /// The gradients that are not zero, divided by the longest one's length.
  struct problem {
    problem(gram_view g, double c) {
      double largest = 0;
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (g(i, i) > 0) nonzero.push_back(i);
        largest = std::max(largest, g(i, i));
      }
      const auto n = static_cast<Eigen::Index>(nonzero.size());
      const auto count = static_cast<double>(g.size());
      gram = Eigen::MatrixXd::NullaryExpr(
          n, n, [&](Eigen::Index i, Eigen::Index j) { return g(of_all(i), of_all(j)) / largest; });
      with_mean = gram.rowwise().sum() / count;
      lengths = gram.diagonal().cwiseSqrt();
      mean2 = with_mean.sum() / count;
      const double mass = lengths.sum() / count;
      // A mean that is nothing but rounding has no direction, and no length.
      if (!(mean2 > count * gram_accuracy * mass * mass)) mean2 = 0;
      radius = c * std::sqrt(mean2);
    }

    std::size_t of_all(Eigen::Index i) const { return nonzero[static_cast<std::size_t>(i)]; }
    double length_of(const Eigen::VectorXd& w) const { return std::sqrt(std::max(0.0, w.dot(gram * w))); }

    /// w for one ν.
    Eigen::VectorXd shortest(double nu) const {
      std::vector<double> shifted;  // packed
      for (Eigen::Index i = 0; i < gram.rows(); ++i) {
        for (Eigen::Index j = 0; j <= i; ++j)
          shifted.push_back(gram(i, j) + nu * (with_mean(i) + with_mean(j)) + nu * nu * mean2);
        const double mass = lengths(i) + nu * std::sqrt(mean2);
        if (!(shifted.back() > gram_accuracy * mass * mass)) shifted.back() = 0;
      }
      Eigen::VectorXd w(gram.rows());
      min_norm{}({shifted.data(), nonzero.size()}, {w.data(), nonzero.size()});
      return w;
    }

    /// w for the ν at which log(‖g_w‖ / (ν √φ)), which falls as log ν grows, is 0.
    Eigen::VectorXd solve() const {
      const double least = std::sqrt(static_cast<double>(lengths.size()) * gram_accuracy) * lengths.minCoeff();
      Eigen::VectorXd w;
      const auto excess = [&](double log_nu) {
        w = shortest(std::exp(log_nu));
        return std::log(std::max(length_of(w), least / 16) / radius) - log_nu;
      };
      double high = std::log(1 / radius) + 1, low = std::log(least / radius) - 1;
      double at_high = excess(high), at_low = excess(low);
      if (at_low <= 0) return w;
      for (int round = 0, side = 0; round < 200 && high - low > 1e-14; ++round) {
        const bool halve = round % 3 == 2;
        const double middle = halve ? (low + high) / 2 : low + (high - low) * at_low / (at_low - at_high);
        const double at_middle = excess(middle);
        if (std::abs(at_middle) <= 1e-14) break;
        // Where the same end moves twice in a row, the other's value counts half (the Illinois method).
        const int moved = at_middle > 0 ? 1 : -1;
        (moved > 0 ? low : high) = middle;
        (moved > 0 ? at_low : at_high) = at_middle;
        if (std::exchange(side, moved) == moved) (moved > 0 ? at_high : at_low) /= 2;
      }
      return w;
    }

    std::vector<std::size_t> nonzero;
    Eigen::MatrixXd gram;
    Eigen::VectorXd with_mean, lengths;  // gᵢ·ḡ, ‖gᵢ‖
    double mean2 = 0, radius = 0;        // ‖ḡ‖², √φ
  };
};

}  // namespace adasum::rules
