// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/conflict_free.hpp>

#include <doctest/doctest.h>

#include <Eigen/QR>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/columns.hpp"
#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_conflict_free {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("conflict_free: as in the authors' package and in TorchJD") {
  // conflictfree 0.1.8: ConFIG_update; torchjd 0.18.0: ConFIG.
  check_published(
      rules::conflict_free{},
      {{{0.0689221446868885, -0.512453557700158, -0.136445252711877, 0.100154506604914, -1.11683262166964,
         -0.739885762902732},
        {-3.10548236517338, -1.71886981408664, -5.33713281724185, -1.81287505313611, 0.440686782000399,
         -0.73852413486909},
        {3.27806898166845, 1.6088866450995, 2.04061485628181, -1.4835429537545, 3.65416437568048, 1.35326235781549},
        {-2.59019225748395, 0.524515687179944, -0.568034751005763, 0.379954002585549, 1.20323690803697,
         -0.79920864266328}}},
      1e-11);
}

TEST_CASE("conflict_free: one inner product with all unit gradients, as long as the projections together") {
  for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::scaled})
    for (const std::size_t n : {2u, 3u, 8u})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto g = random_gradients<double>(n, 40, seed, kind);
        const auto result = combined(rules::conflict_free{}, g);
        const double length = norm_of(result);
        double projections = 0;
        for (const auto& gradient : g) projections += dot(gradient, result) / length;
        CHECK(projections == doctest::Approx(length).epsilon(1e-8));
        const double cosine = dot(g[0], result) / norm_of(g[0]) / length;
        CHECK(cosine > 0);
        for (const auto& gradient : g)
          CHECK(dot(gradient, result) / norm_of(gradient) / length == doctest::Approx(cosine).epsilon(1e-8));
      }
}

TEST_CASE("conflict_free: dependent gradients, by the pseudo-inverse of the unit gradients") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto g = random_gradients<double>(5, 40, seed, gradient_kind::low_rank);
    const auto m = columns(g);
    Eigen::MatrixXd units = m.transpose();
    units.rowwise().normalize();
    Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> decomposition;
    decomposition.setThreshold(1e-10);
    const Eigen::VectorXd u = decomposition.compute(units).solve(Eigen::VectorXd::Ones(5)).normalized();
    const Eigen::VectorXd expected = (m.transpose() * u).sum() * u;
    const auto result = combined(rules::conflict_free{}, g);
    CHECK(distance(result, {expected.begin(), expected.end()}) <= 1e-9 * norm_of(result));
  }
}

TEST_CASE("conflict_free: opposed gradients give the mean, and it is counted") {
  rules::conflict_free rule;
  CHECK(weights_of(rule, {{1, 2}, {-1, -2}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
  // Three directions in a plane that add up to 0.
  const double h = std::sqrt(0.75);
  CHECK(weights_of(rule, {{1, 0}, {-0.5, h}, {-1, -2 * h}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(rule.fallbacks == 2);
}

TEST_CASE("conflict_free: a zero gradient takes no part; equal gradients are added up") {
  const auto c = weights_of(rules::conflict_free{}, {{1, 0, 0}, {0, 0, 0}, {0, 2, 0}});
  CHECK(c[1] == 0);
  CHECK(c[0] == doctest::Approx(1.5));
  CHECK(c[2] == doctest::Approx(0.75));
  const auto sum = combined(rules::conflict_free{}, {{1, 2}, {1, 2}, {1, 2}});
  CHECK(distance(sum, {3, 6}) <= 1e-13);
}

TEST_CASE("conflict_free: has what every rule has") {
  check_rule(rules::conflict_free{}, {.degree = 1, .accuracy = 1e-7, .widest_scale = 1e100});
  check_rule(rules::conflict_free{.per_segment = true}, {.degree = 1, .accuracy = 1e-7});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::conflict_free{}, 1, scale);
}

}  // namespace test_of_rules_eigen_conflict_free
