// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules that look at small eigenvalues, on gradients of very different lengths: against decompositions of the gradients
// themselves in long double.
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>

#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/norms.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_conditioning {

using namespace adasum;
using namespace adasum::test;

namespace {

using exact = long double;
using exact_vector = Eigen::Matrix<exact, Eigen::Dynamic, 1>;
using exact_matrix = Eigen::Matrix<exact, Eigen::Dynamic, Eigen::Dynamic>;

exact_matrix columns(const std::vector<vec>& g) {
  exact_matrix matrix(static_cast<Eigen::Index>(g.front().size()), static_cast<Eigen::Index>(g.size()));
  for (Eigen::Index i = 0; i < matrix.cols(); ++i)
    for (Eigen::Index x = 0; x < matrix.rows(); ++x)
      matrix(x, i) = g[static_cast<std::size_t>(i)][static_cast<std::size_t>(x)];
  return matrix;
}

exact_vector combination(const exact_matrix& m, const vec& weights) {
  exact_vector sum = exact_vector::Zero(m.rows());
  for (Eigen::Index i = 0; i < m.cols(); ++i) sum += weights[static_cast<std::size_t>(i)] * m.col(i);
  return sum;
}

/// Independent gradients of lengths between 1 and 1/ratio.
std::vector<vec> of_lengths(std::size_t n, double ratio, std::uint64_t seed) {
  auto g = random_gradients<double>(n, 30, seed);
  for (std::size_t i = 0; i < n; ++i)
    for (double& x : g[i]) x *= std::pow(ratio, -static_cast<double>((i * 7 + seed) % n) / static_cast<double>(n - 1));
  return g;
}

constexpr double ratios[] = {1, 1e4, 1e8, 1e12};

}  // namespace

TEST_CASE("min_norm: a gradient that is short beside the others is not harmed") {
  // The hull's points nearest to 0 are between the two short ones.
  const auto c = weights_of(rules::min_norm{}, {{0, 1}, {2e-7, 1e-7}, {-1e-7, 1e-7}});
  CHECK(c[0] == doctest::Approx(0).epsilon(1e-12));
  CHECK(c[1] == doctest::Approx(1.0 / 3).epsilon(1e-12));
  CHECK(c[2] == doctest::Approx(2.0 / 3).epsilon(1e-12));
}

TEST_CASE("min_norm: optimal relative to each gradient's own length") {
  for (const double ratio : ratios)
    for (const std::size_t n : {2u, 3u, 8u, 20u})
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(ratio);
        CAPTURE(n);
        CAPTURE(seed);
        const auto g = of_lengths(n, ratio, seed);
        const auto m = columns(g);
        const auto c = weights_of(rules::min_norm{}, g);
        const exact_vector r = combination(m, c);
        exact mass = 0;
        for (Eigen::Index i = 0; i < m.cols(); ++i) mass += c[static_cast<std::size_t>(i)] * m.col(i).norm();
        for (Eigen::Index i = 0; i < m.cols(); ++i) {
          CHECK(c[static_cast<std::size_t>(i)] >= 0);
          CHECK((m.col(i).dot(r) - r.squaredNorm()) / m.col(i).norm() >= -1e-12L * mass);
        }
      }
}

TEST_CASE("imtl_g: equal projections, whatever the lengths") {
  for (const double ratio : ratios)
    for (const std::size_t n : {2u, 3u, 8u})
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(ratio);
        CAPTURE(n);
        CAPTURE(seed);
        const auto g = of_lengths(n, ratio, seed);
        const auto m = columns(g);
        rules::imtl_g rule;
        const exact_vector r = combination(m, weights_of(rule, g));
        if (rule.fallbacks != 0) continue;
        const exact projection = m.col(0).dot(r) / m.col(0).norm();
        for (Eigen::Index i = 1; i < m.cols(); ++i)
          CHECK(std::abs(m.col(i).dot(r) / m.col(i).norm() - projection) <= 1e-10L * r.norm());
      }
}

// Eigen's SVD goes on until it is exact to the last bit, which it never is to the epsilon of ppc64le's long double.
TEST_CASE("aligned_mtl: singular vectors of equal length, lengths to 1e8" *
          doctest::skip(std::numeric_limits<exact>::epsilon() < std::numeric_limits<double>::min())) {
  for (const double ratio : {1.0, 1e4, 1e8})
    for (const std::size_t n : {2u, 3u, 8u})
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(ratio);
        CAPTURE(n);
        CAPTURE(seed);
        const auto g = of_lengths(n, ratio, seed);
        const auto m = columns(g);
        const Eigen::JacobiSVD<exact_matrix> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
        const exact_vector mean = exact_vector::Constant(m.cols(), exact(1) / m.cols());
        const exact_vector expected =
            svd.singularValues().minCoeff() * (svd.matrixU() * (svd.matrixV().transpose() * mean));
        const auto c = weights_of(rules::aligned_mtl{}, g);
        CHECK((combination(m, c) - expected).norm() <= 1e-6L * expected.norm());
      }
}

TEST_CASE("a zero gradient takes no part in imtl_g and aligned_mtl, and is the result of min_norm") {
  const std::vector<vec> g{{1, 0, 0}, {0, 0, 0}, {0, 2, 0}};
  CHECK(weights_of(rules::imtl_g{}, g) == vec{2.0 / 3, 0, 1.0 / 3});
  CHECK(weights_of(rules::aligned_mtl{}, g)[1] == 0);
  CHECK(weights_of(rules::min_norm{}, g) == vec{0, 1, 0});
}

TEST_CASE("gradients of any norm") {
  for (const double scale : {1e-150, 1e-119, 1e-80, 1e80, 1e119, 1e150}) {
    check_scaled(rules::min_norm{}, 1, scale, 1e-7);
    check_scaled(rules::imtl_g{}, 1, scale, 1e-7);
    check_scaled(rules::aligned_mtl{}, 1, scale, 1e-7);
  }
}

TEST_CASE("long gradients beside short ones: nothing leaves the range") {
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
    check(rules::min_norm{}, shortest);
    check(rules::imtl_g{}, 100 * longest);
    check(rules::aligned_mtl{}, longest);
  }
}

TEST_CASE("floats: as the same rule on doubles, for collinear pairs and others") {
  for (const auto kind : {gradient_kind::low_rank, gradient_kind::independent, gradient_kind::near_parallel})
    for (const std::size_t n : {2u, 3u})
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        CAPTURE(std::string(to_string(kind)));
        CAPTURE(n);
        CAPTURE(seed);
        auto g = random_gradients<float>(n, 200, seed, kind);
        if (kind == gradient_kind::low_rank)  // exactly collinear: whole numbers, times one
          for (std::size_t i = 0; i < n; ++i)
            for (std::size_t x = 0; x < g[i].size(); ++x)
              g[i][x] = static_cast<float>((1 + i) * ((x * 37 + seed * 11) % 201)) - 100 * static_cast<float>(1 + i);
        std::vector<vec> wide;
        for (const auto& gradient : g) wide.emplace_back(gradient.begin(), gradient.end());
        const auto check = [&](auto rule) {
          CAPTURE(std::string(rule.name));
          std::vector<float> out(200);
          combine(serial_space{}, g, out, rule);
          const auto expected = combined(rule, wide);
          CHECK(distance(vec(out.begin(), out.end()), expected) <= 1e-5 * norm_of(expected));
        };
        check(rules::min_norm{});
        check(rules::imtl_g{});
        check(rules::aligned_mtl{});
      }
}

}  // namespace test_of_rules_eigen_conditioning
