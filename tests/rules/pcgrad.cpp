// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/orders.hpp>
#include <adasum/rules/pcgrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_pcgrad {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("pcgrad: as in TorchJD, given the same orders") {
  // torchjd 0.18.0: PCGrad, with the orders of shared_order(5, 0, 0) in place of torch.randperm.
  check_published(
      rules::pcgrad{.seed = 5},
      {{{0.1056952012656, -0.790387561798533, -0.20517958249874, 0.166991976782066, -1.70593737763969,
         -1.11974178784723},
        {-3.27, -1.96, -5.34, -1.59, -0.26, -0.43},
        {0.692518207447459, 5.37112457939474, 4.09578241079772, -1.90516044119933, 4.03083637780946, 2.052134862826},
        {-3.6420504833818, -0.589969146826302, 7.48135302493598, 5.16901003243038, 5.68215125330213,
         -6.96625835823281}}},
      1e-12);
}

TEST_CASE("pcgrad: on the vectors themselves, in the same orders, call after call") {
  for (const auto kind : all_gradient_kinds)
    for (const std::size_t n : {1u, 2u, 3u, 8u}) {
      rules::pcgrad rule{.seed = 11, .average = true};
      for (std::uint64_t call = 0; call < 3; ++call) {
        const auto g = random_gradients<double>(n, 20, call, kind);
        rules::shared_order order(11, call, 0);
        vec expected(20, 0);
        double longest = 0;
        for (std::size_t i = 0; i < n; ++i) {
          vec z = g[i];
          for (const auto j : order(n))
            if (j != i && dot(z, g[j]) < 0) add(z, -dot(z, g[j]) / dot(g[j], g[j]), g[j]);
          add(expected, 1 / static_cast<double>(n), z);
          longest = std::max(longest, norm_of(g[i]));
        }
        CHECK(distance(combined(rule, g), expected) <= 1e-11 * longest);
      }
      CHECK(rule.calls == std::vector<std::uint64_t>{3});
    }
}

TEST_CASE("pcgrad: of two gradients, none is harmed; where none are opposed, the sum or the mean") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto g = random_gradients<double>(2, 4, seed);
    const auto result = combined(rules::pcgrad{}, g);
    for (const auto& gradient : g) CHECK(dot(gradient, result) >= -1e-13);
  }
  CHECK(weights_of(rules::pcgrad{}, {{1, 0}, {1, 1}, {0, 1}}) == vec{1, 1, 1});
  CHECK(weights_of(rules::pcgrad{.average = true}, {{1, 0}, {1, 1}, {0, 1}, {1, 2}}) == vec{0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("pcgrad: seed and call make the order; a copy with the state goes on alike") {
  const auto g = random_gradients<double>(6, 4, 1);
  rules::pcgrad rule{.seed = 1};
  const auto first = combined(rule, g), second = combined(rule, g);
  CHECK(distance(first, second) > 1e-6);
  CHECK(distance(first, combined(rules::pcgrad{.seed = 2}, g)) > 1e-6);
  CHECK(combined(rules::pcgrad{.seed = 1}, g) == first);
  CHECK(combined(rules::pcgrad{.seed = 1, .calls = {1}}, g) == second);
}

TEST_CASE("pcgrad: a seed beyond 32 bits is told from others in the check that ranks agree") {
  CHECK(rules::pcgrad{.seed = 1}.parameters() != rules::pcgrad{.seed = 1 + (std::uint64_t{1} << 60)}.parameters());
}

TEST_CASE("pcgrad: opposed gradients cancel, and a zero gradient changes nothing") {
  CHECK(combined(rules::pcgrad{}, {{1, 2}, {-1, -2}}) == vec{0, 0});
  CHECK(combined(rules::pcgrad{}, {{1, 2}, {0, 0}, {2, 0}}) == vec{3, 2});
}

TEST_CASE("pcgrad: has what every rule has") {
  check_rule(rules::pcgrad{}, {.degree = 1, .symmetric = false, .widest_scale = 1e100});
  check_rule(rules::pcgrad{.average = true, .per_segment = true}, {.degree = 1, .symmetric = false});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::pcgrad{}, 1, scale);
}

}  // namespace test_of_rules_pcgrad
