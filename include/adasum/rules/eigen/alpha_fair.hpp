// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "../../core/scalar.hpp"
#include "spectrum.hpp"

namespace adasum::rules {

/// Solves Rβ = k β^(-1/a), β > 0, for a matrix R of directions, k > 0 and a > 0. The solution is the minimum of
///
///     Ψ(β) = ½ βᵀRβ + Σ kᵢ φ(βᵢ),   φ'(x) = -x^(-1/a):   φ(x) = -log x for a = 1, else x^(1-1/a) / (1/a - 1)
///
/// which is strictly convex. The solution exists exactly if some vector has a positive inner product with every
/// direction, which Σ βᵢ uᵢ then has; otherwise β grows without end while Σ βᵢ uᵢ vanishes.
///
/// Newton's method, from the solution for orthogonal directions: each step is halved until Ψ falls by a part of what its
/// slope promises (Armijo), and stays inside β > 0; the best multiple of β, known in closed form, comes after each step. It
/// ends where the steps, relative to β, are small and get no smaller, after usually 5 to 30 steps of O(n³).
class alpha_fair {
 public:
  /// @param directions  R, the cosines of the gradients; @param k  as above; @param a  as above
  alpha_fair(const Eigen::MatrixXd& directions, const Eigen::VectorXd& k, double a)
      : directions_(directions), k_(k), power_(1 / a), beta_(k.array().pow(a / (1 + a))) {}

  /// @return β; nothing if no vector improves all, as far as the Gram matrix can tell (‖Σ βᵢ uᵢ‖² ≤ n·gram_accuracy·(Σβᵢ)²)
  std::optional<Eigen::VectorXd> solve() {
    const double little = 0.01 * std::min(1.0, 1 / power_);  // far from the solution, relative steps are near 1 or a
    double before = 1;
    for (int round = 0; round < 1000; ++round) {
      if (!take_best_multiple()) return std::nullopt;
      const Eigen::VectorXd barrier = k_.array() * beta_.array().pow(-power_);  // -k φ'
      const Eigen::VectorXd slope = directions_ * beta_ - barrier;
      Eigen::MatrixXd hessian = directions_;
      hessian.diagonal() += power_ * (barrier.array() / beta_.array()).matrix();
      const Eigen::VectorXd step = -hessian.ldlt().solve(slope);
      const double descent = slope.dot(step);  // minus the square of the Newton decrement
      const double relative = (step.array() / beta_.array()).abs().maxCoeff();
      if (relative <= 1e-15 || (relative <= little && relative > before / 2)) break;
      before = relative;
      if (!detail::is_finite(descent) || descent >= 0 || !move(step, descent)) break;
    }
    if (!take_best_multiple()) return std::nullopt;
    const double rounding = static_cast<double>(beta_.size()) * gram_accuracy * beta_.sum();
    if (!((directions_ * beta_).minCoeff() > -rounding)) return std::nullopt;
    return beta_;
  }

 private:
  /// β ← tβ, t = argmin Ψ(tβ): t^(1+1/a) = Σ kᵢ βᵢ^(1-1/a) / βᵀRβ. @return whether there is one
  bool take_best_multiple() {
    const double square = beta_.dot(directions_ * beta_), mass = beta_.sum();
    if (!(square > static_cast<double>(beta_.size()) * gram_accuracy * mass * mass)) return false;
    beta_ *= std::pow((k_.array() * beta_.array().pow(1 - power_)).sum() / square, 1 / (1 + power_));
    return detail::is_finite(beta_.sum()) && beta_.minCoeff() > 0;
  }

  /// @return whether Ψ has fallen
  bool move(const Eigen::VectorXd& step, double descent) {
    double length = 1;
    for (Eigen::Index i = 0; i < step.size(); ++i)
      if (step(i) < 0) length = std::min(length, -0.95 * beta_(i) / step(i));
    const double before = value(beta_);
    const double mass = beta_.sum(), rounding = 1e-15 * (mass * mass + std::abs(before));
    for (int halving = 0; halving < 60; ++halving, length /= 2) {
      const Eigen::VectorXd next = beta_ + length * step;
      if (!(value(next) <= before + 1e-4 * length * descent + rounding)) continue;
      beta_ = next;
      return true;
    }
    return false;
  }

  double value(const Eigen::VectorXd& beta) const {
    const double barrier = power_ == 1 ? -(k_.array() * beta.array().log()).sum()
                                       : (k_.array() * beta.array().pow(1 - power_)).sum() / (power_ - 1);
    return beta.dot(directions_ * beta) / 2 + barrier;
  }

  const Eigen::MatrixXd& directions_;
  const Eigen::VectorXd& k_;
  double power_;  // 1/a
  Eigen::VectorXd beta_;
};

/// The weights α of gradients with Gα = s·α^(-1/a): with α = D⁻¹β and G = D R D, Rβ ∝ d^(1/a-1) β^(-1/a). A zero gradient
/// has weight 0.
/// @param length  of the result Σ αᵢ gᵢ; 0: the length that follows from s = 1 (√n where a = 1)
/// @return whether there are such; otherwise the weights are those of the mean
inline bool fair_weights(const scaled_gram& scaled, double a, double length, std::span<double> weights) {
  std::vector<Eigen::Index> nonzero;
  for (Eigen::Index i = 0; i < scaled.lengths.size(); ++i)
    if (scaled.lengths(i) > 0) nonzero.push_back(i);
  std::ranges::fill(weights, nonzero.empty() ? 0 : 1 / static_cast<double>(weights.size()));
  if (nonzero.empty()) return true;
  const Eigen::VectorXd lengths = scaled.lengths(nonzero);
  const Eigen::MatrixXd directions = scaled.directions(nonzero, nonzero);
  const Eigen::VectorXd k = (lengths / lengths.mean()).array().pow(1 / a - 1);
  if (!detail::is_finite(k.sum()) || k.minCoeff() == 0) return false;
  const auto beta = alpha_fair(directions, k, a).solve();
  if (!beta) return false;
  std::ranges::fill(weights, 0.0);
  const double factor = length == 0 ? 1 : length / std::sqrt(beta->dot(directions * *beta));
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    weights[static_cast<std::size_t>(nonzero[i])] = factor * (*beta)(at) / lengths(at);
  }
  return true;
}

}  // namespace adasum::rules
