// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/upgrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_upgrad {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("upgrad: as in TorchJD") {
  // torchjd 0.18.0: UPGrad with norm_eps = 0 and reg_eps = 0.
  check_published(rules::upgrad{},
                  {{{0.0528476006328001, -0.395193780899267, -0.10258979124937, 0.083495988391033, -0.852968688819847,
                     -0.559870893923614},
                    {-1.09, -0.653333333333333, -1.78, -0.53, -0.0866666666666667, -0.143333333333333},
                    {0.134249313524809, 1.06178521995565, 0.824010932545485, -0.378532287570245, 0.810294613698575,
                     0.401651176299508},
                    {-1.87522811398849, 0.119057781972582, 0.504739014408848, 0.845085512339474, 1.48017276840546,
                     -1.05906361788082}}},
                  1e-11);
}

TEST_CASE("upgrad: harms no gradient, whatever the lengths") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {2u, 3u, 8u, 20u})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(std::string(to_string(kind)));
        CAPTURE(n);
        const auto g = random_gradients<double>(n, 10, seed, kind);
        const auto c = weights_of(rules::upgrad{}, g);
        const auto result = combined(rules::upgrad{}, g);
        double mass = 0;
        for (std::size_t i = 0; i < n; ++i) mass += std::abs(c[i]) * norm_of(g[i]);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK(c[i] >= 1 / static_cast<double>(n) * (1 - 1e-15));
          CHECK(dot(g[i], result) >= -norm_of(g[i]) * (1e-12 * mass + 3e-7 * norm_of(result)));
        }
      }
}

TEST_CASE("upgrad: the mean where no two gradients are opposed; two that are, in closed form") {
  CHECK(weights_of(rules::upgrad{}, {{1, 0, 0}, {1, 5, 0}, {0, 1, 0.5}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  // a·b = -2, a·a = 4, b·b = 5: half of a + (2/5) b and half of b + (2/4) a.
  const auto c = weights_of(rules::upgrad{}, {{2, 0}, {-1, 2}});
  CHECK(c[0] == doctest::Approx(0.75));
  CHECK(c[1] == doctest::Approx(0.7));
  // However short one is beside the other.
  const auto far = weights_of(rules::upgrad{}, {{2, 0}, {-1e-12, 2e-12}});
  CHECK(far[0] == doctest::Approx(0.5 + 0.5 * 0.5e-12));
  CHECK(far[1] == doctest::Approx(0.5 + 0.5 * 0.4e12));
}

TEST_CASE("upgrad: opposed gradients cancel, and a zero gradient takes no part") {
  CHECK(weights_of(rules::upgrad{}, {{1, 2}, {-1, -2}}) == vec{1, 1});
  CHECK(combined(rules::upgrad{}, {{1, 2}, {-1, -2}, {0, 0}}) == vec{0, 0});
  CHECK(weights_of(rules::upgrad{}, {{3, 0}, {0, 0}}) == vec{0.5, 0.5});
}

TEST_CASE("upgrad: one set of weights for the whole model, or one for each segment") {
  const std::vector<vec> g{{1, 0, 1}, {-1, 1, 1}};
  vec out(3);
  const auto whole = combine(serial_space{}, g, out, rules::upgrad{}, segments{1, 2});
  CHECK(whole.weight(0, 0) == 0.5);
  const auto apart = combine(serial_space{}, g, out, rules::upgrad{.per_segment = true}, segments{1, 2});
  CHECK(out[0] == 0);
  CHECK(apart.weight(0, 0) == 1);
  CHECK(apart.weight(0, 1) == 0.5);
}

TEST_CASE("upgrad: has what every rule has") {
  check_rule(rules::upgrad{}, {.degree = 1, .widest_scale = 1e100});
  check_rule(rules::upgrad{.per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::upgrad{}, 1, scale);
}

}  // namespace test_of_rules_eigen_upgrad
