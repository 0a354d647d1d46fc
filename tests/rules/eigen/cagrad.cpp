// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/eigen/cagrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_eigen_cagrad {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("cagrad: as in TorchJD, to the accuracy of its solver") {
  // torchjd 0.18.0: CAGrad with norm_eps = 1e-12.
  check_published(rules::cagrad{.c = 0.5},
                  {{{0.0513896231261293, -0.379879828260298, -0.103729600816596, 0.0681058749495422, -0.836053518845805,
                     -0.558981988146921},
                    {-1.6155517544356, -0.857982845515939, -2.55084628922271, -0.911669100478303, 0.287516257807765,
                     -0.417378522556771},
                    {0.424853249452577, 0.995714683883878, 1.0758537029403, -0.806423439528003, 0.659144032757619,
                     0.510284417546464},
                    {-0.505880275203877, -0.0570066973765077, 1.39342147739683, 0.98448945545926, 0.861614657626871,
                     -1.20670577400281}}},
                  1e-4);
}

TEST_CASE("cagrad: the formula, solved by Newton's method for the gradients that have weights") {
  // numpy 2.4.6, with the gradients that have weights as CLARABEL 0.11.1 finds them.
  check_published(rules::cagrad{.c = 0.5},
                  {{{0.0513892822052808, -0.379874667134194, -0.103731289559304, 0.0680975882016785, -0.836051933914607,
                     -0.558986995097709},
                    {-1.61553627474153, -0.857980683556383, -2.55086586248838, -0.911667939082741, 0.287506243897981,
                     -0.417370055878757},
                    {0.424853246549539, 0.995714675346849, 1.07585370111862, -0.806423441289104, 0.65914402603668,
                     0.510284415516738},
                    {-0.50588628438574, -0.0570150668740568, 1.39340946590546, 0.984511982971467, 0.861647264389952,
                     -1.20666877217584}}},
                  1e-10);
  check_published(
      rules::cagrad{.c = 0.9},
      {{{0.0651323161361421, -0.481464535991388, -0.131472144674011, 0.0863089238168959, -1.05963727316595,
         -0.708476867516058},
        {-1.94746488676992, -1.00867789230568, -3.27185018585113, -1.2084959915344, 0.529265752158546,
         -0.588193626294186},
        {0.842080010990462, 1.24526615252092, 1.38124496031553, -1.123881240882, 0.790498007000043, 0.669437674216701},
        {-1.80054333808507, 0.267303320252866, 0.211972524700722, 0.397273290892696, 0.572279922094019,
         -0.812920411744789}}},
      1e-10);
}

TEST_CASE("cagrad: on the sphere around the mean, the least inner product with those that have weights") {
  for (const auto kind : all_gradient_kinds)
    for (const double c : {0.1, 0.5, 0.9})
      for (const std::size_t n : {2u, 3u, 8u, 20u})
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          CAPTURE(std::string(to_string(kind)));
          CAPTURE(c);
          CAPTURE(n);
          CAPTURE(seed);
          const auto g = random_gradients<double>(n, 30, seed, kind);
          rules::cagrad rule{.c = c};
          const auto weights = weights_of(rule, g);
          const auto result = combined(rule, g);
          if (rule.fallbacks != 0) continue;
          vec mean(30, 0);
          for (const auto& gradient : g) add(mean, 1 / static_cast<double>(n), gradient);
          CHECK(distance(result, mean) == doctest::Approx(c * norm_of(mean)).epsilon(1e-7));
          double least = 1e300, gap = 0, mass = 0, longest = 0;
          for (const auto& gradient : g) longest = std::max(longest, norm_of(gradient));
          for (const auto& gradient : g)
            if (norm_of(gradient) > 0) least = std::min(least, dot(gradient, result));
          for (std::size_t i = 0; i < n; ++i) {
            const double w = weights[i] - 1 / static_cast<double>(n);
            CHECK(w >= -1e-15);
            mass += w;
            gap += w * (dot(g[i], result) - least);
          }
          CHECK(gap <= 1e-8 * mass * longest * norm_of(result));
        }
}

TEST_CASE("cagrad: c = 0 is the mean; two gradients of one length in closed form") {
  CHECK(weights_of(rules::cagrad{.c = 0}, {{1, 0}, {0, 5}}) == vec{0.5, 0.5});
  // By symmetry, w = 1/2 each: the mean, lengthened by 1 + c.
  const auto c = weights_of(rules::cagrad{.c = 0.5}, {{1, 0}, {0, 1}});
  CHECK(c[0] == doctest::Approx(0.75).epsilon(1e-12));
  CHECK(c[1] == doctest::Approx(0.75).epsilon(1e-12));
}

TEST_CASE("cagrad: where no vector improves all, the mean, counted; a zero gradient counts in the mean alone") {
  rules::cagrad rule;
  CHECK(weights_of(rule, {{1, 2}, {-1, -2}}) == vec{0.5, 0.5});
  CHECK(rule.fallbacks == 0);  // the mean is 0, and the result with it
  CHECK(weights_of(rule, {{0, 1}, {0, -1}, {1, 0}}) == vec{1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(rule.fallbacks == 1);
  CHECK(combined(rule, {{4, 0}, {-1, 0}}) == vec{0.75, 0});  // harms one by half as much as the mean
  const auto c = weights_of(rule, {{1, 0}, {0, 0}, {0, 1}});
  CHECK(rule.fallbacks == 1);
  CHECK(c[0] == doctest::Approx(0.5));
  CHECK(c[1] == doctest::Approx(1.0 / 3));
  CHECK(c[2] == doctest::Approx(0.5));
}

TEST_CASE("cagrad: has what every rule has") {
  check_rule(rules::cagrad{}, {.degree = 1, .one_times = 1.5, .accuracy = 1e-7, .widest_scale = 1e100});
  check_rule(rules::cagrad{.c = 0.9, .per_segment = true}, {.degree = 1, .one_times = 1.9, .accuracy = 1e-7});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::cagrad{}, 1, scale);
}

}  // namespace test_of_rules_eigen_cagrad
