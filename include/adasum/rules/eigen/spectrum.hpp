// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Eigenvalues>

#include <cmath>
#include <cstddef>

#include "../../core/gram.hpp"
#include "../span_vector.hpp"

namespace adasum::rules {

/// A Gram matrix taken apart into lengths and directions: Gᵢⱼ = dᵢ Rᵢⱼ dⱼ, Rᵢᵢ = 1. The matrix R of directions is as
/// well conditioned as any diagonal scaling of G but for a factor n (van der Sluis, Numerische Mathematik 14, 1969), so
/// that how many gradients are independent does not depend on how long they are. Of a zero gradient, d and the row and
/// column of R are 0.
struct scaled_gram {
  /// Of this Gram matrix.
  explicit scaled_gram(gram_view g)
      : lengths(static_cast<Eigen::Index>(g.size())), directions(lengths.size(), lengths.size()) {
    const auto entry = [&](Eigen::Index i, Eigen::Index j) {
      return g(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
    };
    for (Eigen::Index i = 0; i < lengths.size(); ++i) lengths(i) = std::sqrt(entry(i, i));
    for (Eigen::Index i = 0; i < lengths.size(); ++i)
      for (Eigen::Index j = 0; j < lengths.size(); ++j) {
        const bool zero = lengths(i) == 0 || lengths(j) == 0;
        directions(i, j) = zero ? 0 : i == j ? 1 : entry(i, j) / lengths(i) / lengths(j);
      }
  }

  Eigen::VectorXd lengths;     ///< d
  Eigen::MatrixXd directions;  ///< R
};

/// The eigenvalues λ (ascending) and orthonormal eigenvectors V of a symmetric, positive semi-definite matrix. Those
/// below n·gram_accuracy·λ_max may be nothing but errors of the Gram matrix, and count as zero: there are `first` of
/// them.
struct spectrum {
  /// @param matrix  symmetric, positive semi-definite
  explicit spectrum(const Eigen::MatrixXd& matrix) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
    values = solver.eigenvalues();
    vectors = solver.eigenvectors();
    const auto n = values.size();
    const double threshold = static_cast<double>(n) * gram_accuracy * values(n - 1);
    while (first < n && !(values(first) > threshold)) ++first;
  }

  /// Σ over the eigenvalues that are not zero: f(λ) v (v·x).
  template <class Function>
  Eigen::VectorXd apply(Function&& f, const Eigen::VectorXd& x) const {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(values.size());
    for (auto k = first; k < values.size(); ++k) sum += f(values(k)) * vectors.col(k).dot(x) * vectors.col(k);
    return sum;
  }

  Eigen::VectorXd values;   ///< λ, ascending
  Eigen::MatrixXd vectors;  ///< V, a column for each
  Eigen::Index first = 0;   ///< of those that do not count as zero
};

}  // namespace adasum::rules
