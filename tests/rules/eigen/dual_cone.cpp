// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/dual_cone.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/columns.hpp"
#include "support/random_gradients.hpp"

namespace test_of_rules_eigen_dual_cone {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Columns of length 1; of zero gradients, 0.
Eigen::MatrixXd directions_of(std::size_t n, std::size_t length, std::uint64_t seed, gradient_kind kind) {
  Eigen::MatrixXd m = columns(random_gradients<double>(n, length, seed, kind));
  for (Eigen::Index i = 0; i < m.cols(); ++i)
    if (m.col(i).norm() > 0) m.col(i).normalize();
  return m;
}

}  // namespace

TEST_CASE("dual_cone: the optimality conditions") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {1u, 2u, 3u, 8u, 40u})
      for (const std::size_t length : {2u, 5u, 60u})
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          CAPTURE(std::string(to_string(kind)));
          CAPTURE(n);
          CAPTURE(length);
          CAPTURE(seed);
          const auto m = directions_of(n, length, seed, kind);
          Eigen::MatrixXd r = m.transpose() * m;
          for (Eigen::Index i = 0; i < r.rows(); ++i) r(i, i) = r(i, i) > 0 ? 1 : 0;
          const Eigen::VectorXd h = Eigen::VectorXd::Random(r.rows()).cwiseAbs();
          const Eigen::VectorXd v = rules::dual_cone(r).shortest_above(h);
          const Eigen::VectorXd result = m * v, slopes = m.transpose() * result;
          const double mass = v.cwiseAbs().sum();
          CHECK((v - h).minCoeff() >= 0);
          // √(n·gram_accuracy) ≤ 4e-7 of the result's length where directions depend on each other.
          CHECK(slopes.minCoeff() >= -1e-12 * mass - 4e-7 * result.norm());
          CHECK(std::abs((v - h).dot(slopes)) <= 1e-11 * mass * mass);
        }
}

TEST_CASE("dual_cone: in closed form for two directions") {
  // The first is bent until it is orthogonal to the second: v = (1, -cos).
  const Eigen::MatrixXd r{{1, -0.5}, {-0.5, 1}};
  rules::dual_cone cone(r);
  CHECK(cone.shortest_above(Eigen::VectorXd{{1, 0}}) == Eigen::VectorXd{{1, 0.5}});
  CHECK(cone.shortest_above(Eigen::VectorXd{{0, 1}}) == Eigen::VectorXd{{0.5, 1}});
  CHECK(cone.shortest_above(Eigen::VectorXd{{1, 0.75}}) == Eigen::VectorXd{{1, 0.75}});
}

}  // namespace test_of_rules_eigen_dual_cone
