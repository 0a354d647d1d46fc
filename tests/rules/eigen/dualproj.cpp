// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/dualproj.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_dualproj {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("dualproj: as in TorchJD") {
  // torchjd 0.18.0: DualProj with norm_eps = 0 and reg_eps = 0.
  check_published(rules::dualproj{},
                  {{{0.035, -0.265, -0.065, 0.065, -0.56, -0.36},
                    {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666666, -0.143333333333333},
                    {0.022, 1.036, 0.72, -0.276, 0.78, 0.376},
                    {-1.29777832295605, 0.147911945509965, 0.657969959002863, 0.631637717415437, 0.695754996303417,
                     -0.961394546918965}}},
                  1e-11);
}

TEST_CASE(
    "dualproj: the optimality conditions: no gradient is harmed, and weights differ from 1/n only where they must") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {2u, 3u, 8u, 20u})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(std::string(to_string(kind)));
        CAPTURE(n);
        const auto g = random_gradients<double>(n, 10, seed, kind);
        const auto c = weights_of(rules::dualproj{}, g);
        const auto result = combined(rules::dualproj{}, g);
        const double least = 1 / static_cast<double>(n);
        double mass = 0, gap = 0;
        for (std::size_t i = 0; i < n; ++i) mass += std::abs(c[i]) * norm_of(g[i]);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK(c[i] >= least * (1 - 1e-15));
          CHECK(dot(g[i], result) >= -norm_of(g[i]) * (1e-12 * mass + 3e-7 * norm_of(result)));
          gap += (c[i] - least) * dot(g[i], result);
        }
        CHECK(std::abs(gap) <= 1e-11 * mass * mass);
      }
}

TEST_CASE("dualproj: the mean where it harms nobody; two opposed gradients in closed form") {
  CHECK(weights_of(rules::dualproj{}, {{1, 0}, {-0.5, 1}}) == vec{0.5, 0.5});
  // (a + b)/2 is opposed to b, so that more of b is added until it is not: b·a = -8, b·b = 5.
  const auto c = weights_of(rules::dualproj{}, {{8, 0}, {-1, 2}});
  CHECK(c[0] == doctest::Approx(0.5));
  CHECK(c[1] == doctest::Approx(0.8));
}

TEST_CASE("dualproj: opposed gradients cancel, whatever their lengths; a zero gradient takes no part") {
  CHECK(combined(rules::dualproj{}, {{1, 2}, {-1, -2}}) == vec{0, 0});
  CHECK(weights_of(rules::dualproj{}, {{4, 0}, {-2, 0}}) == vec{0.5, 1});
  CHECK(weights_of(rules::dualproj{}, {{3, 0}, {0, 0}}) == vec{0.5, 0.5});
}

TEST_CASE("dualproj: one set of weights for the whole model, or one for each segment") {
  const std::vector<vec> g{{2, 0, 1}, {-1, 1, 3}};
  vec out(3);
  const auto whole = combine(serial_space{}, g, out, rules::dualproj{}, segments{1, 2});
  CHECK(whole.weight(1, 0) == 0.5);
  const auto apart = combine(serial_space{}, g, out, rules::dualproj{.per_segment = true}, segments{1, 2});
  CHECK(apart.weight(1, 0) == 1);
  CHECK(apart.weight(1, 1) == 0.5);
}

TEST_CASE("dualproj: has what every rule has") {
  check_rule(rules::dualproj{}, {.degree = 1, .widest_scale = 1e100});
  check_rule(rules::dualproj{.per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::dualproj{}, 1, scale);
}

}  // namespace test_of_rules_eigen_dualproj
