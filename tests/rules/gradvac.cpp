// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/gradvac.hpp>
#include <adasum/rules/pcgrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/published_results.hpp"
#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_gradvac {

using namespace adasum;
using namespace adasum::test;

namespace {

/// The results of the third call, with gradient i times ((i - call) mod n) + 1.
void check_third_call(double beta, const std::array<vec, 4>& expected) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    rules::gradvac rule{.beta = beta, .seed = 5};
    vec result;
    for (std::size_t call = 0; call < 3; ++call) {
      auto g = compared_gradients[k];
      const auto n = g.size();
      for (std::size_t i = 0; i < n; ++i)
        for (double& x : g[i]) x *= static_cast<double>((i + 2 * n - call) % n + 1);
      result = combined(rule, g);
    }
    CHECK(distance(result, expected[k]) <= 1e-11 * norm_of(expected[k]));
  }
}

}  // namespace

TEST_CASE("gradvac: as in TorchJD, given the same orders, after three calls") {
  // torchjd 0.18.0: GradVac with eps = 1e-300, with the orders of shared_order(5, call, 0) in place of torch.randperm.
  check_third_call(
      0.5,
      {{{0.150918171870057, -1.38983234022621, -0.0578270412981834, 1.01353627751998, -2.04394147724865,
         -0.736652796498774},
        {-4.85, -3.63, -12.22, -2.91, -1.63, 0.06},
        {-0.312901520148692, 12.1101962146971, 11.8196578911727, -5.85745396579319, 12.1777255098096, 5.54687880599612},
        {-21.3884587136578, -4.27766749279584, 53.6553604301829, 29.021454339368, -5.19099595722163,
         -23.4361709181987}}});
  check_third_call(
      0.01,
      {{{0.175091098588085, -1.45588139886883, -0.207996695917587, 0.711404418593522, -2.60617009878508,
         -1.37130456107545},
        {-4.85, -3.63, -12.22, -2.91, -1.63, 0.06},
        {0.603324719896674, 12.3164492923602, 12.7040675942635, -6.65539785149969, 12.5053474501143, 5.71760813322401},
        {-16.5327127089843, -2.18844104383221, 41.7464453777234, 19.895078081946, 14.6865623394145,
         -39.2375116917919}}});
}

TEST_CASE("gradvac: two gradients meet the target, and the targets follow the cosines") {
  const std::vector<vec> g{{3, 0, 0}, {-1, 2, 0}};  // cos = -1/√5
  rules::gradvac rule{.beta = 0.25, .target = 0.5};
  // The first alone, turned towards the second: cos(z, g₂) = 0.5.
  const double cosine = -1 / std::sqrt(5.0), w = 3 / std::sqrt(5.0) *
                                                 (0.5 * std::sqrt(1 - cosine * cosine) - cosine * std::sqrt(0.75)) /
                                                 std::sqrt(0.75);
  vec z = g[0];
  add(z, w, g[1]);
  CHECK(dot(z, g[1]) / norm_of(z) / norm_of(g[1]) == doctest::Approx(0.5));
  const auto c = weights_of(rule, g);
  CHECK(c[1] == doctest::Approx(1 + w));
  CHECK(rule.targets[0][1] == doctest::Approx(0.75 * 0.5 + 0.25 * cosine));
  CHECK(rule.targets[0][2] == doctest::Approx(0.75 * 0.5 + 0.25 * cosine));
}

TEST_CASE("gradvac: with targets that stay 0, pcgrad") {
  for (const auto kind : all_gradient_kinds)
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto g = random_gradients<double>(6, 20, seed, kind);
      const auto expected = combined(rules::pcgrad{.seed = seed}, g);
      double longest = 0;
      for (const auto& gradient : g) longest = std::max(longest, norm_of(gradient));
      CHECK(distance(combined(rules::gradvac{.beta = 0, .seed = seed}, g), expected) <= 1e-10 * longest);
    }
}

TEST_CASE("gradvac: state makes the difference, and a copy of it goes on alike") {
  rules::gradvac rule{.beta = 0.5};
  combined(rule, random_gradients<double>(4, 20, 1, gradient_kind::near_parallel));
  CHECK(rule.targets[0].size() == 16);
  auto restored = rules::gradvac{.beta = 0.5};
  restored.targets = rule.targets;
  restored.calls = rule.calls;
  const auto g = random_gradients<double>(4, 20, 2);
  const auto next = combined(rule, g);
  CHECK(combined(restored, g) == next);
  CHECK(distance(combined(rules::gradvac{.beta = 0.5, .calls = {1}}, g), next) > 1e-3);
  combined(rule, random_gradients<double>(3, 20, 2));
  CHECK(rule.targets[0].size() == 9);
}

TEST_CASE("gradvac: gradients that were parallel, and are opposed: bounded by epsilon") {
  rules::gradvac rule{.beta = 1};
  weights_of(rule, {{1, 0}, {1, 0}});
  const auto c = weights_of(rule, {{1, 0}, {0, 1}});
  CHECK(c[0] <= 1.01e8);
  CHECK(std::isfinite(c[0] + c[1]));
}

TEST_CASE("gradvac: opposed gradients cancel, and a zero gradient changes nothing") {
  CHECK(combined(rules::gradvac{}, {{1, 2}, {-1, -2}}) == vec{0, 0});
  CHECK(combined(rules::gradvac{}, {{1, 2}, {0, 0}, {2, 0}}) == vec{3, 2});
}

TEST_CASE("gradvac: what has vanished is turned no more, and leaves the usual cosines as they are") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {  // any order of the others
    CAPTURE(seed);
    rules::gradvac rule{.beta = 0.5, .seed = seed};
    // The first two cancel, so they are not turned towards the third any more, if that comes later.
    CHECK(combined(rule, {{1, 0}, {-1, 0}, {0, 1}}) == vec{0, 1});
    for (const double target : rule.targets[0]) CHECK((target == 0 || target == -0.5));
  }
}

TEST_CASE("gradvac: has what every rule has") {
  check_rule(rules::gradvac{}, {.degree = 1, .symmetric = false, .widest_scale = 1e100});
  check_rule(rules::gradvac{.beta = 0.5, .average = true, .per_segment = true}, {.degree = 1, .symmetric = false});
  for (const double scale : {1e-170, 1e170}) check_scaled(rules::gradvac{}, 1, scale);
}

}  // namespace test_of_rules_gradvac
