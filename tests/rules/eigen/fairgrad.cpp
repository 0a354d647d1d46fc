// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/fairgrad.hpp>

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

namespace test_of_rules_eigen_fairgrad {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("fairgrad: as in TorchJD, but for its length") {
  // torchjd 0.18.0: FairGrad, scaled to the mean of the gradients' lengths.
  check_published(rules::fairgrad{.alpha = 0.5},
                  {{{0.071008269219182, -0.52984008567629, -0.138887057406246, 0.108750440309182, -1.14782323655319,
                     -0.75609081301339},
                    {-1.31358664407641, -0.76946138541102, -2.18126302800585, -0.677756648444058, -0.0170406189341476,
                     -0.214652598765291},
                    {0.261988843842711, 1.38550501963254, 1.03042125451895, -0.483614296044313, 1.05115246449582,
                     0.534565822024389},
                    {-3.51731406383512, 0.25501080670735, 0.658725008078593, 1.58018291971234, 2.91539812081747,
                     -1.76815871439111}}},
                  1e-9);
  check_published(rules::fairgrad{.alpha = 2},
                  {{{0.0706479008591422, -0.523969042737764, -0.141046087557431, 0.0987583171815181, -1.14677115225417,
                     -0.76275454783998},
                    {-1.27432554876479, -0.710937315042983, -2.19081481044223, -0.736135373512599, 0.158241612039965,
                     -0.292004431669263},
                    {0.808351030245064, 1.20570731842575, 1.01446543512849, -0.661044546690486, 0.906658475116809,
                     0.528473326134458},
                    {-4.64151126119044, 0.968443839653967, -1.39310222603761, 0.33822808110336, 1.35692091147225,
                     -0.784525466764524}}},
                  1e-9);
}

TEST_CASE("fairgrad: Gv is proportional to v^(-1/α)") {
  for (const double alpha : {0.1, 0.5, 1.0, 2.0, 10.0})
    for (const auto kind : {gradient_kind::independent, gradient_kind::near_parallel, gradient_kind::duplicate,
                            gradient_kind::opposed, gradient_kind::scaled})
      for (const std::size_t n : {1u, 2u, 3u, 8u, 20u})
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          CAPTURE(alpha);
          CAPTURE(std::string(to_string(kind)));
          CAPTURE(n);
          CAPTURE(seed);
          const auto g = random_gradients<double>(n, 40, seed, kind);
          rules::fairgrad rule{.alpha = alpha};
          const auto v = weights_of(rule, g);
          const auto result = combined(rule, g);
          REQUIRE(rule.fallbacks == 0);
          double lengths = 0, mass = 0;
          for (std::size_t i = 0; i < n; ++i) {
            lengths += norm_of(g[i]) / static_cast<double>(n);
            mass += v[i] * norm_of(g[i]);
          }
          CHECK(norm_of(result) == doctest::Approx(lengths).epsilon(1e-7));
          // Gv = λ v^(-1/α), λ from the gradient with the largest share; inner products are known to 1e-15 of the masses.
          std::size_t largest = 0;
          for (std::size_t i = 0; i < n; ++i)
            if (v[i] * dot(g[i], result) > v[largest] * dot(g[largest], result)) largest = i;
          for (std::size_t i = 0; i < n; ++i) {
            CHECK(v[i] > 0);
            const double expected = dot(g[largest], result) * std::pow(v[largest] / v[i], 1 / alpha);
            CHECK(std::abs(dot(g[i], result) - expected) <= 1e-7 * expected + 1e-13 * norm_of(g[i]) * mass);
          }
        }
}

TEST_CASE("fairgrad: in closed form for orthogonal gradients") {
  // d²v = v^(-1/α): v ∝ d^(-2α/(1+α)), d^(-4/3) for α = 2.
  const auto v = weights_of(rules::fairgrad{}, {{8, 0}, {0, 0}, {0, 1}});
  CHECK(v[2] / v[0] == doctest::Approx(16).epsilon(1e-12));
  CHECK(v[1] == 0);
  CHECK(norm_of(combined(rules::fairgrad{}, {{8, 0}, {0, 0}, {0, 1}})) == doctest::Approx(3));
}

TEST_CASE("fairgrad: where no vector improves all, the mean, and it is counted") {
  rules::fairgrad rule;
  CHECK(weights_of(rule, {{1, 2}, {-3, -6}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
  CHECK(weights_of(rule, {{1, 0}, {-1, 0}, {0, 1}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(rule.fallbacks == 2);
}

TEST_CASE("fairgrad: lengths whose powers leave the range of double: the mean, and it is counted") {
  rules::fairgrad rule{.alpha = 0.02};
  CHECK(weights_of(rule, {{1, 0}, {0, 1e-9}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 1);
}

TEST_CASE("fairgrad: has what every rule has") {
  check_rule(rules::fairgrad{}, {.degree = 1, .widest_scale = 1e100});
  check_rule(rules::fairgrad{.alpha = 0.5, .per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::fairgrad{}, 1, scale);
}

}  // namespace test_of_rules_eigen_fairgrad
