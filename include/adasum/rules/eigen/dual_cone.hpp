// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "spectrum.hpp"

namespace adasum::rules {

/// The shortest combination whose weights have lower bounds: argmin vᵀRv, v ≥ h, R being the matrix of the directions of
/// gradients (scaled_gram). Among all vectors that have no negative inner product with any gradient, Σ vᵢ gᵢ is the one
/// nearest to Σ hᵢ gᵢ (the projection onto the dual cone of the gradients).
///
/// Solved exactly, but for rounding, by the active-set method of Lawson and Hanson, "Solving Least Squares Problems" (1974),
/// chapter 23, on y = v - h ≥ 0, until the inner product of every direction with the result is at least
/// -n·gram_accuracy·Σ|vⱼ|. A direction that depends on those with yᵢ > 0, as far as the Gram matrix can tell (its squared
/// distance from their span is at most n·gram_accuracy), is not added to them: its inner product with the result may
/// then be as low as -√(n·gram_accuracy) times the result's length. O(n²) to add a gradient to the active set, of
/// which there are at most n, and O(n³) to take one out, which is rare.
class dual_cone {
 public:
  /// @param directions  R, the cosines of the gradients
  explicit dual_cone(const Eigen::MatrixXd& directions)
      : directions_(directions),
        accuracy_(static_cast<double>(directions.rows()) * gram_accuracy),
        factor_(Eigen::MatrixXd::Zero(directions.rows(), directions.rows())) {}

  /// @param least  h
  /// @return v
  Eigen::VectorXd shortest_above(const Eigen::VectorXd& least) {
    const auto n = least.size();
    const Eigen::VectorXd target = -(directions_ * least);
    Eigen::VectorXd y = Eigen::VectorXd::Zero(n);
    active_.clear();
    refused_.assign(static_cast<std::size_t>(n), false);
    // Each round makes the result shorter, so no active set comes twice; rounding could still let two take turns.
    for (Eigen::Index round = 0; round < 10 * n + 100 && add_one(least + y); ++round) {
      const auto added = static_cast<std::size_t>(active_.back());
      if (settle(target, y))
        refused_.assign(refused_.size(), false);
      else
        refused_[added] = true;
    }
    return least + y;
  }

 private:
  /// Adds the direction with the most negative slope to the active set. @return whether there is one
  bool add_one(const Eigen::VectorXd& v) {
    Eigen::VectorXd slopes = directions_ * v;
    for (const auto i : active_) slopes(i) = 0;
    const double least = -accuracy_ * v.cwiseAbs().sum();
    Eigen::Index next = 0;
    while (slopes.minCoeff(&next) < least) {
      if (!refused_[static_cast<std::size_t>(next)] && append(next)) return true;
      slopes(next) = 0;
    }
    return false;
  }

  /// Appends to the active set, and a row to its Cholesky factor. @return whether the direction is independent of it
  bool append(Eigen::Index i) {
    const auto k = static_cast<Eigen::Index>(active_.size());
    Eigen::VectorXd row = directions_(active_, i);
    factor_.topLeftCorner(k, k).triangularView<Eigen::Lower>().solveInPlace(row);
    const double pivot = directions_(i, i) - row.squaredNorm();
    if (!(pivot > accuracy_)) return false;
    factor_.row(k).head(k) = row.transpose();
    factor_(k, k) = std::sqrt(pivot);
    active_.push_back(i);
    return true;
  }

  /// R_AA⁻¹ b_A
  Eigen::VectorXd solve_active(const Eigen::VectorXd& b) const {
    const auto k = static_cast<Eigen::Index>(active_.size());
    Eigen::VectorXd x = b(active_);
    factor_.topLeftCorner(k, k).triangularView<Eigen::Lower>().solveInPlace(x);
    factor_.topLeftCorner(k, k).transpose().triangularView<Eigen::Upper>().solveInPlace(x);
    return x;
  }

  /// Moves y to the minimum over the active set, R_AA y_A = target_A; takes out of the set what would become negative.
  /// @return whether y has moved
  bool settle(const Eigen::VectorXd& target, Eigen::VectorXd& y) {
    bool moved = false;
    while (!active_.empty()) {
      const Eigen::VectorXd goal = solve_active(target), from = y(active_);
      if (goal.minCoeff() > 0) {
        y(active_) = goal;
        return true;
      }
      // How far each may go before it is 0, as a fraction of the way to its goal.
      const auto limit = [&](Eigen::Index a) {
        return goal(a) > 0 ? 2 : from(a) > 0 ? from(a) / (from(a) - goal(a)) : 0;
      };
      double step = 1;
      for (Eigen::Index a = 0; a < goal.size(); ++a) step = std::min(step, limit(a));
      moved = moved || step > 0;
      const auto before = std::exchange(active_, {});
      for (Eigen::Index a = 0; a < goal.size(); ++a) {
        const auto i = before[static_cast<std::size_t>(a)];
        const bool stays = limit(a) > step && append(i);
        y(i) = stays ? from(a) + step * (goal(a) - from(a)) : 0;
      }
    }
    return moved;
  }

  const Eigen::MatrixXd& directions_;
  double accuracy_;
  Eigen::MatrixXd factor_;            // lower triangular: of the active rows and columns of the matrix
  std::vector<Eigen::Index> active_;  // with weights above their bounds
  std::vector<bool> refused_;         // whose addition has changed nothing since y moved last
};

}  // namespace adasum::rules
