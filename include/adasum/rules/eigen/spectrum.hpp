// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Eigenvalues>

#include <cstddef>

#include "../../core/gram.hpp"

namespace adasum::rules {

/// The eigenvalues λ (ascending) and orthonormal eigenvectors V of a Gram matrix. Those below n·2⁻⁵²·λ_max count as
/// zero: there are `first` of them.
struct gram_spectrum {
  explicit gram_spectrum(gram_view g) {
    const auto n = static_cast<Eigen::Index>(g.size());
    Eigen::MatrixXd dense(n, n);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j < n; ++j) dense(i, j) = g(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(dense);
    values = solver.eigenvalues();
    vectors = solver.eigenvectors();
    const double threshold = static_cast<double>(n) * 0x1p-52 * values(n - 1);
    while (first < n && !(values(first) > threshold)) ++first;
  }

  /// Σ over the eigenvalues that are not zero: f(λ) v (v·x).
  template <class Function>
  Eigen::VectorXd apply(Function&& f, const Eigen::VectorXd& x) const {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(values.size());
    for (auto k = first; k < values.size(); ++k) sum += f(values(k)) * vectors.col(k).dot(x) * vectors.col(k);
    return sum;
  }

  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
  Eigen::Index first = 0;
};

}  // namespace adasum::rules
