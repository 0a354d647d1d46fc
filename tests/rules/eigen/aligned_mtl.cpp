// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Against the singular value decomposition of the gradients themselves.
#include <adasum/rules/eigen/aligned_mtl.hpp>

#include <doctest/doctest.h>

#include <Eigen/SVD>

#include <cstddef>

#include "support/columns.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_aligned_mtl {

using namespace adasum;
using namespace adasum::test;

namespace {

vec to_vec(const Eigen::VectorXd& v) { return {v.begin(), v.end()}; }

}  // namespace

TEST_CASE("aligned_mtl: singular vectors of equal length") {
  for (const std::size_t n : {1u, 2u, 3u, 8u}) {
    const auto g = random_gradients<double>(n, 40, n);
    const auto m = columns(g);
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Eigen::VectorXd mean = Eigen::VectorXd::Constant(m.cols(), 1 / static_cast<double>(n));
    const auto expected = to_vec(svd.singularValues().minCoeff() * svd.matrixU() * svd.matrixV().transpose() * mean);
    CHECK(distance(combined(rules::aligned_mtl{}, g), expected) <= 1e-11 * norm_of(expected));
  }
}

TEST_CASE("aligned_mtl: dependent gradients, by the smallest singular value that is not zero") {
  const auto g = random_gradients<double>(5, 40, 1, gradient_kind::low_rank);
  const auto m = columns(g);
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd mean = Eigen::VectorXd::Constant(5, 0.2);
  const auto expected =
      to_vec(svd.singularValues()(1) * svd.matrixU().leftCols(2) * svd.matrixV().leftCols(2).transpose() * mean);
  CHECK(distance(combined(rules::aligned_mtl{}, g), expected) <= 1e-10 * norm_of(expected));
}

TEST_CASE("aligned_mtl: has what every rule has") { check_rule(rules::aligned_mtl{}, {.degree = 1, .accuracy = 1e-7}); }

}  // namespace test_of_rules_eigen_aligned_mtl
