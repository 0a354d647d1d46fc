// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules that solve dense systems, against decompositions of the gradients themselves.
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>

#include <Eigen/QR>
#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "support/norms.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

using namespace adasum;
using namespace adasum::test;

namespace {

/// The gradients as columns.
Eigen::MatrixXd columns(const std::vector<vec>& g) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(g.front().size()), static_cast<Eigen::Index>(g.size()));
  for (Eigen::Index i = 0; i < matrix.cols(); ++i)
    matrix.col(i) = Eigen::Map<const Eigen::VectorXd>(g[static_cast<std::size_t>(i)].data(), matrix.rows());
  return matrix;
}

vec to_vec(const Eigen::VectorXd& v) { return {v.begin(), v.end()}; }

}  // namespace

TEST_CASE("imtl_g: equal projections onto all gradients, weights that add up to 1") {
  for (const std::size_t n : {2u, 3u, 8u})
    for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel}) {
      auto g = random_gradients<double>(n, 40, n, kind);
      uniform_numbers uniform(n);
      const auto common = uniform.vector(40);
      for (auto& gradient : g) add(gradient, 0.5, common);
      const auto weights = weights_of(rules::imtl_g{}, g);
      CHECK(std::accumulate(weights.begin(), weights.end(), 0.0) == doctest::Approx(1));
      const auto result = combined(rules::imtl_g{}, g);
      const double projection = dot(result, g[0]) / norm_of(g[0]);
      for (const auto& gradient : g)
        CHECK(dot(result, gradient) / norm_of(gradient) == doctest::Approx(projection).epsilon(1e-6));
      // The published form solves, on differences of gradients and of unit gradients, for the weights but the first.
      const auto m = columns(g);
      Eigen::MatrixXd d(40, m.cols() - 1), u(40, m.cols() - 1);
      for (Eigen::Index i = 1; i < m.cols(); ++i) {
        d.col(i - 1) = m.col(0) - m.col(i);
        u.col(i - 1) = m.col(0).normalized() - m.col(i).normalized();
      }
      // g₁ - Σ cᵢ dᵢ orthogonal to every u: (uᵀd) c = uᵀ g₁.
      const Eigen::VectorXd rest = (u.transpose() * d).fullPivHouseholderQr().solve(u.transpose() * m.col(0));
      for (std::size_t i = 1; i < n; ++i)
        CHECK(weights[i] == doctest::Approx(rest(static_cast<Eigen::Index>(i - 1))).epsilon(1e-5));
    }
}

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

TEST_CASE("imtl_g: opposed gradients give the mean, and it is counted") {
  // v = G⁺√diag G = 0 for g and -g.
  rules::imtl_g rule;
  CHECK(weights_of(rule, {{1, 2}, {-1, -2}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
}

TEST_CASE("min_norm: the shortest convex combination, of two in closed form") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto g = random_gradients<double>(2, 12, seed);
    if (seed % 3 == 1) add(g[1], 3, g[0]);
    const auto difference = [&] {
      auto d = g[0];
      add(d, -1, g[1]);
      return d;
    }();
    // argmin ‖c a + (1 - c) b‖: c = b·(b - a) / ‖a - b‖², cut to [0, 1].
    const double c = std::clamp(-dot(g[1], difference) / dot(difference, difference), 0.0, 1.0);
    vec expected(12, 0);
    add(expected, c, g[0]);
    add(expected, 1 - c, g[1]);
    CHECK(distance(combined(rules::min_norm{}, g), expected) <= 1e-9 * norm_of(g[0]));
  }
}

TEST_CASE("min_norm: harms no gradient, and nothing in the hull is shorter") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {2u, 3u, 8u, 20u}) {
      CAPTURE(std::string(to_string(kind)));
      CAPTURE(n);
      const auto g = random_gradients<double>(n, 10, n, kind);
      double largest = 0;
      for (const auto& gradient : g) largest = std::max(largest, dot(gradient, gradient));
      const auto c = weights_of(rules::min_norm{}, g);
      CHECK(std::accumulate(c.begin(), c.end(), 0.0) == doctest::Approx(1).epsilon(1e-12));
      CHECK(std::ranges::min(c) >= 0);
      const auto result = combined(rules::min_norm{}, g);
      // The optimality condition: every gradient's inner product with the result is at least ‖result‖². The duality gap
      // that the rule stops at, 1e-13 of the largest square, and rounding.
      for (const auto& gradient : g) CHECK(dot(gradient, result) >= dot(result, result) - 1e-12 * largest);
    }
}

TEST_CASE("scale, symmetry, one gradient, zeros, duplicates, dependent gradients") {
  check_rule(rules::min_norm{}, {.degree = 1, .accuracy = 1e-7});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::min_norm{}, 1, scale);
  check_rule(rules::imtl_g{}, {.degree = 1, .accuracy = 1e-7});
  check_rule(rules::aligned_mtl{}, {.degree = 1, .accuracy = 1e-7});
}

TEST_CASE("gradients of any norm") {
  for (const double scale : {1e-150, 1e-119, 1e-80, 1e80, 1e119, 1e150}) {
    check_scaled(rules::min_norm{}, 1, scale, 1e-7);
    check_scaled(rules::imtl_g{}, 1, scale, 1e-7);
    check_scaled(rules::aligned_mtl{}, 1, scale, 1e-7);
  }
}

TEST_CASE(
    "long gradients beside short ones: the spectrum's small eigenvalues count as zero, nothing leaves the range") {
  for (const auto& norms : norms_under_test<double>()) {
    CAPTURE(norms.front());
    CAPTURE(norms.back());
    const auto g = with_norms<double>(5, 20, norms, gradient_kind::independent, 3);
    const double longest = *std::ranges::max_element(norms), shortest = *std::ranges::min_element(norms);
    const auto check = [&](auto rule, double bound) {
      CAPTURE(std::string(rule.name));
      for (const double weight : weights_of(rule, g)) CHECK(std::isfinite(weight));
      const auto result = times({combined(rule, g)}, 1 / bound).front();  // whose square may be out of range
      CHECK(norm_of(result) <= 1 + 1e-6);
    };
    // By its tolerance, 1e-13 of the largest square, any combination as short as that is the shortest.
    check(rules::min_norm{}, std::max(shortest, 1e-6 * longest));
    check(rules::imtl_g{}, 100 * longest);
    check(rules::aligned_mtl{}, longest);
  }
}
