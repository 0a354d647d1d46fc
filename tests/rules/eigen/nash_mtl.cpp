// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/nash_mtl.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_nash_mtl {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("nash_mtl: as in TorchJD, which solves the same equations by convex programs") {
  // mpmath 40 digits; torchjd 0.18.0, NashMTL with max_norm = 0 and optim_niter = 200, has the same directions to 1e-5.
  check_published(
      rules::nash_mtl{},
      {{{0.0674097004016182, -0.501208152347044, -0.133451064941693, 0.0979566917828875, -1.0923245753237,
         -0.723649529991831},
        {-0.817207664277698, -0.469610603676035, -1.37536213032331, -0.441476202909965, 0.033796626627444,
         -0.154832409805421},
        {0.504333208782324, 1.36356899862288, 1.0761016391584, -0.59037314119628, 1.03415113487661, 0.55706718365202},
        {-1.79269612916185, 0.323731669507497, -0.321251534528376, 0.46742134940897, 1.06098970818246,
         -0.483791243675184}}},
      1e-12);
}

TEST_CASE("nash_mtl: αᵢ times the inner product with the result is 1, whatever the lengths") {
  for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::duplicate,
                          gradient_kind::opposed, gradient_kind::scaled})
    for (const std::size_t n : {1u, 2u, 3u, 8u, 20u})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(std::string(to_string(kind)));
        CAPTURE(n);
        CAPTURE(seed);
        const auto g = random_gradients<double>(n, 40, seed, kind);
        rules::nash_mtl rule;
        const auto c = weights_of(rule, g);
        const auto result = combined(rule, g);
        REQUIRE(rule.fallbacks == 0);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK(c[i] > 0);
          CHECK(c[i] * dot(g[i], result) == doctest::Approx(1).epsilon(1e-7));
        }
        CHECK(norm_of(result) == doctest::Approx(std::sqrt(static_cast<double>(n))).epsilon(1e-7));
      }
}

TEST_CASE("nash_mtl: in closed form for orthogonal gradients; as long as the gradients are on average") {
  const auto c = weights_of(rules::nash_mtl{}, {{2, 0, 0}, {0, 0, 0}, {0, 0.5, 0}, {0, 0, 1e-9}});
  CHECK(c[0] == doctest::Approx(0.5).epsilon(1e-14));
  CHECK(c[1] == 0);
  CHECK(c[2] == doctest::Approx(2).epsilon(1e-14));
  CHECK(c[3] == doctest::Approx(1e9).epsilon(1e-14));
  const rules::nash_mtl scaled{.scale = rules::nash_mtl::scaling::mean_norm};
  CHECK(norm_of(combined(scaled, {{3, 0}, {1, 1}, {0, 0}})) == doctest::Approx(1 + std::sqrt(2.0) / 3));
}

TEST_CASE("nash_mtl: where no vector improves all, the mean, and it is counted") {
  rules::nash_mtl rule;
  CHECK(weights_of(rule, {{1, 2}, {-3, -6}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
  CHECK(weights_of(rule, {{1, 0}, {-1, 1}, {-1, -1}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(rule.fallbacks == 2);
  CHECK(weights_of(rule, {{1, 0}, {-1, 0}, {0, 1}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(rule.fallbacks == 3);
  // Nearly so: cos = -1 + 5e-9.
  const auto c = weights_of(rule, {{1, 1e-4}, {-1, 0}});
  CHECK(rule.fallbacks == 3);
  CHECK(c[0] == doctest::Approx(std::sqrt(2.0) * 1e4).epsilon(1e-6));
}

TEST_CASE("nash_mtl: has what every rule has") {
  check_rule(rules::nash_mtl{}, {.degree = 0, .one_is_itself = false, .widest_scale = 1e100});
  constexpr auto mean_norm = rules::nash_mtl::scaling::mean_norm;
  check_rule(rules::nash_mtl{.scale = mean_norm, .per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::nash_mtl{}, 0, scale);
}

}  // namespace test_of_rules_eigen_nash_mtl
