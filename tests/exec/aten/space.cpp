// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// aten_space on the CPU: the contract of the concept, and as good as serial_space.
#include "support/doctest_beside_torch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/rules/named.hpp>
#include <adasum/testing/execution_space.hpp>
#include <adasum/torch.hpp>

#include "support/random_gradients.hpp"

namespace test_of_exec_aten_space {

using namespace adasum;
using namespace adasum::test;

namespace {

const aten_space space(at::kCPU);

static_assert(execution_space<aten_space, float> && execution_space<aten_space, c10::BFloat16> &&
              device_space<aten_space>);

}  // namespace

TEST_CASE_TEMPLATE("the contract", T, float, double, c10::Half, c10::BFloat16) {
  CHECK_NOTHROW(check_execution_space<T>(space));
}

TEST_CASE("everything optional is there") {
  const auto taken = check_execution_space<float>(space);
  for (const auto* const member : {"16-bit copies", "arithmetic in double", "sums in double", "for_recombining"})
    CHECK(std::ranges::find(taken, member) != taken.end());
}

/// Lengths around those of blocks, and of blocks of blocks; longer than what one step works on.
TEST_CASE("inner products of segments of any length, to the accuracy of doubles") {
  std::vector<std::size_t> lengths;
  for (const std::size_t length :
       {0u, 1u, 127u, 128u, 129u, 254u, 255u, 256u, 257u, 16'383u, 16'384u, 16'640u, 3'000'000u}) {
    lengths.push_back(length);
    lengths.push_back(length % 5);
  }
  lengths.insert(lengths.end(), 30'000, 1);
  const segments cut(lengths);
  const auto gradients = random_gradients<float>(2, cut.total(), 3);
  const std::vector<const float*> at{gradients[0].data(), gradients[1].data()};
  std::vector<double> gram(3 * cut.size()), expected(gram.size());
  const slice whole{cut, {0, cut.total()}};
  space.measure<float>(whole, at, gram.data());
  serial_space{}.measure_in_double<float>(whole, at, expected.data());
  for (std::size_t k = 0; k < cut.size(); ++k)
    for (std::size_t entry = 0; entry < 3; ++entry) {
      const auto norms = std::sqrt(expected[3 * k] * expected[3 * k + 2]);
      const bool near =
          std::abs(gram[3 * k + entry] - expected[3 * k + entry]) <= 1e-13 * std::max(norms, expected[3 * k + entry]);
      if (!near)
        FAIL_CHECK("entry ", entry, " of segment ", k, ": ", gram[3 * k + entry], " instead of ",
                   expected[3 * k + entry]);
    }
}

TEST_CASE("many segments in one step, some of them with weight 0 and NaN") {
  std::vector<std::size_t> lengths(5000, 3);
  const segments cut(lengths);
  auto gradients = random_gradients<float>(2, cut.total(), 4);
  std::vector<double> weights(2 * cut.size(), 0.5);
  for (std::size_t k = 0; k < cut.size(); k += 7) {
    weights[2 * k + 1] = 0;
    gradients[1][3 * k] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<const float*> at{gradients[0].data(), gradients[1].data()};
  std::vector<float> mixed(cut.total()), expected(cut.total());
  const slice whole{cut, {0, cut.total()}};
  space.mix<float>(whole, at, weights.data(), mixed.data());
  serial_space{}.mix_in_double<float>(whole, at, weights.data(), expected.data());
  CHECK(mixed == expected);
}

TEST_CASE("reductions of one process") {
  const segments cut{1000, 1, 70'000, 129};
  const auto gradients = random_gradients<float>(5, cut.total(), 8);
  for (const char* const name : {"adasum", "mean", "geometric_median"}) {
    std::vector<float> on_device(cut.total()), expected(cut.total());
    auto rule = rules::make_rule(name, rules::usual_rules{});
    combine(space, gradients, on_device, rule, cut);
    combine(serial_space{}, gradients, expected, rule, cut);
    for (std::size_t i = 0; i < cut.total(); ++i)
      if (std::abs(on_device[i] - expected[i]) > 1e-6f * (std::abs(expected[i]) + 1)) FAIL_CHECK(name, " at ", i);
  }
}

TEST_CASE("the device meta has no memory") { CHECK_THROWS_AS(aten_space(at::kMeta), bad_input); }

}  // namespace test_of_exec_aten_space
