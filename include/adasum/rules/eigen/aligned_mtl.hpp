// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Eigen/Cholesky>
#include <Eigen/SVD>

#include <cstddef>
#include <span>
#include <string_view>

#include "spectrum.hpp"

namespace adasum::rules {

/// The mean of the gradients after their principal components have been made equally long:
///
///     c = √λ_min V Λ^-½ Vᵀ (1/n),   G = V Λ Vᵀ,   λ_min the smallest eigenvalue that is not zero
///
/// Source: Senushkin et al., "Independent Component Alignment for Multi-Task Learning", CVPR 2023, section 4
/// (Aligned-MTL). The result is 0 if all gradients are 0, and about as long as the shortest component otherwise. A zero
/// gradient has weight 0, and counts in 1/n. No parameters.
///
/// Which eigenvalues are zero is decided on the gradients' directions (scaled_gram), by a Cholesky factorization with
/// pivoting, so that a short gradient counts as a long one does; the eigenvalues are the squared singular values of that
/// factor times the lengths. The error of the result, relative to it, is about 1e-15 times the condition number of the
/// independent directions, times the longest length over the shortest; components below about 1e-15 of the longest are
/// lost. Needs Eigen.
struct aligned_mtl {
  static constexpr std::string_view name = "aligned_mtl";
  static constexpr inner_products needs = inner_products::accurate;

  void operator()(gram_view g, std::span<double> weights) const {
    const Eigen::MatrixXd factor = factor_of(scaled_gram(g));
    const auto n = factor.rows();
    Eigen::VectorXd c = Eigen::VectorXd::Zero(n);
    if (factor.cols() > 0) {
      const Eigen::JacobiSVD<Eigen::MatrixXd> svd(factor, Eigen::ComputeThinU);
      const auto rank = svd.rank();
      const Eigen::VectorXd lengths = svd.singularValues().head(rank);  // of the principal components, descending
      const auto components = svd.matrixU().leftCols(rank);
      const Eigen::VectorXd mean = Eigen::VectorXd::Constant(n, 1 / static_cast<double>(n));
      const Eigen::VectorXd shares = lengths(rank - 1) * lengths.cwiseInverse();
      c = components * shares.cwiseProduct(components.transpose() * mean);
    }
    for (Eigen::Index i = 0; i < n; ++i) weights[static_cast<std::size_t>(i)] = c(i);
  }

 private:
  /// B of n rows and as many columns as there are independent gradients, with G = B Bᵀ.
  static Eigen::MatrixXd factor_of(const scaled_gram& scaled) {
    const Eigen::LDLT<Eigen::MatrixXd> decomposition(scaled.directions);
    const auto& pivots = decomposition.vectorD();  // descending: squared distances from those before
    const auto n = pivots.size();
    Eigen::Index rank = 0;
    while (rank < n && pivots(rank) > static_cast<double>(n) * gram_accuracy) ++rank;
    Eigen::MatrixXd factor = Eigen::MatrixXd(decomposition.matrixL()).leftCols(rank);
    factor = decomposition.transpositionsP().transpose() * factor;
    return scaled.lengths.asDiagonal() * factor * pivots.head(rank).cwiseSqrt().asDiagonal();
  }
};

}  // namespace adasum::rules
