// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/geometric_median.hpp>

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

namespace test_of_rules_geometric_median {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("geometric_median: as in ByzFL") {
  // byzfl 0.0.11: GeometricMedian(nu = 0.1 · median length, T = 3), and (nu = 1e-6 · median length, T = 3000).
  check_published(rules::geometric_median{.smoothing = 0.1, .iterations = 3},
                  {{{0.0344526441954138, -0.256164113440251, -0.068205941141148, 0.0500650059034324, -0.558279738899872,
                     -0.369852404482552},
                    {-1.04100980346183, -0.627334967936362, -1.79643043223461, -0.536998435811194, -0.0582095244790663,
                     -0.146861263016022},
                    {0.0885965117806479, 1.047791569903, 0.593483749408352, -0.221451963782895, 0.704393462808933,
                     0.388166179871652},
                    {-0.139482084887186, -0.0306144079305644, 0.058893098994915, 0.140402976984844, 0.081144041276791,
                     0.0974473108006293}}},
                  1e-12);
  check_published(rules::geometric_median{.iterations = 3000},
                  {{{0.0344526441954138, -0.256164113440251, -0.068205941141148, 0.0500650059034323, -0.558279738899872,
                     -0.369852404482552},
                    {-1.03603815488734, -0.632580564059886, -1.81074119132101, -0.531064517888608, -0.0824955916625102,
                     -0.133686044391783},
                    {0.0861754120361356, 1.06940985135621, 0.586670720089315, -0.206473752112156, 0.714744626932331,
                     0.39070114140126},
                    {-0.149888436849699, -0.0757585122488286, 0.0536994988042888, 0.0346726520934105,
                     -0.0198904962644439, 0.131871703194611}}},
                  1e-5);
}

TEST_CASE("geometric_median: the sum of the distances has no slope, or less than 1 at a gradient") {
  for (const std::size_t n : {3u, 4u, 9u, 20u})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto g = random_gradients<double>(n, 15, seed);
      const auto z = combined(rules::geometric_median{}, g);
      vec slope(15, 0);
      for (const auto& gradient : g) {
        auto difference = z;
        add(difference, -1, gradient);
        if (norm_of(difference) > 1e-5) add(slope, 1 / norm_of(difference), difference);
      }
      CHECK(norm_of(slope) <= 1e-5);
    }
  // In a line, the middle one.
  const auto c = weights_of(rules::geometric_median{.iterations = 1000}, {{1, 0}, {2, 0}, {70, 0}});
  CHECK(c[1] == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("geometric_median: whatever less than half of the ranks send, it stays near the others") {
  auto g = random_gradients<double>(9, 15, 1, gradient_kind::near_parallel);
  const auto honest = g[0];
  for (const double factor : {-1e3, 1e6, 1e12, -1e100}) {
    for (const std::size_t i : {1u, 4u, 7u, 8u})
      for (double& x : g[i]) x = factor * static_cast<double>(i);
    CHECK(distance(combined(rules::geometric_median{}, g), honest) <= 0.02 * norm_of(honest));
  }
}

TEST_CASE("geometric_median: zero gradients count as 0; where they are half, the result is 0") {
  CHECK(weights_of(rules::geometric_median{}, {{0, 0}, {5, 0}, {0, 0}, {7, 1}}) == vec{0.5, 0, 0.5, 0});
  const auto z = combined(rules::geometric_median{}, {{0, 0}, {4, 0}, {0, 3}});
  CHECK(norm_of(z) > 0.5);
  CHECK(norm_of(z) < 2);
}

TEST_CASE("geometric_median: one set of weights for the whole model, or one for each segment") {
  const std::vector<vec> g{{1, 1}, {1, 2}, {9, 3}};
  vec out(2);
  const auto whole = combine(serial_space{}, g, out, rules::geometric_median{}, segments{1, 1});
  CHECK(whole.weight(0, 0) == whole.weight(0, 1));
  combine(serial_space{}, g, out, rules::geometric_median{.per_segment = true}, segments{1, 1});
  CHECK(distance(out, {1, 2}) <= 1e-4);
}

TEST_CASE("geometric_median: has what every rule has") {
  check_rule(rules::geometric_median{}, {.degree = 1, .accuracy = 1e-6, .widest_scale = 1e100});
  check_rule(rules::geometric_median{.iterations = 3, .per_segment = true}, {.degree = 1});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::geometric_median{}, 1, scale);
}

}  // namespace test_of_rules_geometric_median
