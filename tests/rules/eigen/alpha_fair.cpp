// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/alpha_fair.hpp>
#include <adasum/rules/eigen/min_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "support/random_gradients.hpp"

namespace test_of_rules_eigen_alpha_fair {

using namespace adasum;
using namespace adasum::test;

namespace {

/// The square of the shortest convex combination of directions: 0 where no vector improves all.
double shortest_square(const Eigen::MatrixXd& r) {
  const auto n = static_cast<std::size_t>(r.rows());
  std::vector<double> packed(packed_size(n)), weights(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      packed[packed_index(i, j)] = r(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  rules::min_norm{}({packed.data(), n}, weights);
  const Eigen::VectorXd w = Eigen::Map<const Eigen::VectorXd>(weights.data(), r.rows());
  return w.dot(r * w);
}

}  // namespace

TEST_CASE("alpha_fair: solved wherever there is a solution, from any angles and for factors over many decades") {
  uniform_numbers uniform(1);
  int solved = 0, unsolvable = 0;
  for (int trial = 0; trial < 8000; ++trial) {
    const auto n = static_cast<Eigen::Index>(2 + uniform.below(11)),
               d = static_cast<Eigen::Index>(1 + uniform.below(20));
    const double shift = std::pow(2, 4 * uniform()) - 0.06, a = std::pow(5, uniform());
    Eigen::MatrixXd m = Eigen::MatrixXd::NullaryExpr(d, n, [&] { return uniform() + shift; });
    m.colwise().normalize();
    Eigen::MatrixXd r = m.transpose() * m;
    r.diagonal().setOnes();
    const Eigen::VectorXd k = Eigen::VectorXd::NullaryExpr(n, [&] { return std::pow(10, 6 * uniform()); });
    const double shortest = shortest_square(r);
    const auto beta = rules::alpha_fair(r, k, a).solve();
    CAPTURE(trial);
    CAPTURE(a);
    if (shortest > 1e-6) {
      ++solved;
      REQUIRE(beta);
      const Eigen::VectorXd slopes = r * *beta;
      for (Eigen::Index i = 0; i < n; ++i) {
        CHECK((*beta)(i) > 0);
        const double wanted = k(i) * std::pow((*beta)(i), -1 / a);
        CHECK(std::abs(slopes(i) - wanted) <= 1e-7 * wanted + 1e-13 * beta->sum());
      }
    } else if (shortest < 1e-15) {
      ++unsolvable;
      CHECK(!beta);
    }
  }
  CHECK(solved > 4000);
  CHECK(unsolvable > 300);
}

}  // namespace test_of_rules_eigen_alpha_fair
