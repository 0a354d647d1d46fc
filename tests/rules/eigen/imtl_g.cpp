// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/imtl_g.hpp>

#include <doctest/doctest.h>

#include <Eigen/QR>

#include <cmath>
#include <cstddef>
#include <numeric>

#include "support/columns.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_imtl_g {

using namespace adasum;
using namespace adasum::test;

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

TEST_CASE("imtl_g: opposed gradients give the mean, and it is counted") {
  // v = G⁺√diag G = 0 for g and -g.
  rules::imtl_g rule;
  CHECK(weights_of(rule, {{1, 2}, {-1, -2}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
}

TEST_CASE("imtl_g: as many gradients as opposed ones: what is left of R⁺1 is rounding, and not taken for weights") {
  uniform_numbers uniform(4);
  const auto one = uniform.vector(30);
  for (const std::size_t n : {4u, 6u, 8u, 12u}) {
    std::vector<vec> g;
    for (std::size_t i = 0; i < n; ++i)
      g.push_back(times({one}, (i % 2 == 0 ? 1 : -1) * (1 + std::abs(uniform()))).front());
    rules::imtl_g rule;
    CHECK(weights_of(rule, g) == vec(n, 1 / static_cast<double>(n)));
    CHECK(rule.fallbacks == 1);
  }
}

TEST_CASE("imtl_g: has what every rule has") { check_rule(rules::imtl_g{}, {.degree = 1, .accuracy = 1e-7}); }

}  // namespace test_of_rules_eigen_imtl_g
