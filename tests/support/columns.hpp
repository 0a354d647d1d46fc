// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Eigen/Core>

#include <cstddef>
#include <vector>

#include "rule_checks.hpp"

namespace adasum::test {

/// The gradients as columns.
inline Eigen::MatrixXd columns(const std::vector<vec>& g) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(g.front().size()), static_cast<Eigen::Index>(g.size()));
  for (Eigen::Index i = 0; i < matrix.cols(); ++i)
    matrix.col(i) = Eigen::Map<const Eigen::VectorXd>(g[static_cast<std::size_t>(i)].data(), matrix.rows());
  return matrix;
}

}  // namespace adasum::test
