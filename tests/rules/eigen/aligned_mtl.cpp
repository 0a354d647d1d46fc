// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Against the singular value decomposition of the gradients themselves.
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/rules/eigen/aligned_mtl.hpp>

#include <doctest/doctest.h>

#include <Eigen/SVD>

#include <cmath>
#include <cstddef>
#include <vector>

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

TEST_CASE("aligned_mtl: floats that are nearly collinear give what doubles of the same numbers give") {
  std::size_t compared = 0;
  for (unsigned seed = 1; compared < 10 && seed <= 2000; ++seed)
    for (const double angle : {1e-5, 3e-6, 1e-6}) {
      CAPTURE(seed);
      CAPTURE(angle);
      const auto noise = random_gradients<double>(2, 500, seed);
      std::vector<std::vector<float>> g(2, std::vector<float>(500));
      std::vector<std::vector<double>> same(2, std::vector<double>(500));
      for (std::size_t x = 0; x < 500; ++x) {
        g[0][x] = static_cast<float>(noise[0][x]);
        g[1][x] = static_cast<float>(1.7 * noise[0][x] + angle * noise[1][x]);
        for (std::size_t i = 0; i < 2; ++i) same[i][x] = static_cast<double>(g[i][x]);
      }
      std::vector<float> out(500);
      vec expected(500);
      const auto found = combine(serial_space{}, g, out, rules::aligned_mtl{});
      const auto of_doubles = combine(serial_space{}, same, expected, rules::aligned_mtl{});
      // Inner products that are added in another order change the weights of so nearly collinear gradients. How often that
      // happens depends on the instruction set.
      bool agree = true;
      for (std::size_t i = 0; i < 2; ++i)
        agree = agree && std::abs(found.weight(i, 0) / of_doubles.weight(i, 0) - 1) <= 1e-13;
      if (!agree) continue;
      ++compared;
      CHECK(distance(vec(out.begin(), out.end()), expected) <= 1e-6 * norm_of(expected));
    }
  CHECK(compared >= 10);
}

TEST_CASE("aligned_mtl: has what every rule has") { check_rule(rules::aligned_mtl{}, {.degree = 1, .accuracy = 1e-7}); }

}  // namespace test_of_rules_eigen_aligned_mtl
