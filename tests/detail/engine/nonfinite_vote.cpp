// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "support/doctest_scalars.hpp"
#include "support/oracle_range.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_detail_engine_nonfinite_vote {

/// Numbers at the edge: Inf and NaN, squares outside the range of double, sums that cancel.

using namespace adasum::test;

TEST_CASE_TEMPLATE("Inf and NaN take their whole segment, on every rank alike", T, ADASUM_TEST_SCALARS) {
  const adasum::segments segs{9, 0, 20, 6};
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    auto gradients = random_gradients<T>(static_cast<std::size_t>(size), segs.total(), 11);
    const auto expected = expectation::of<T>(adasum::rules::adasum{}, gradients, segs);
    const auto last = static_cast<std::size_t>(size - 1);
    gradients[last / 2][segs.offset(2) + 19] = quiet_nan<T>();
    gradients[last][segs.offset(0) + 4] = infinity<T>();
    gradients[last][segs.offset(2)] = from_double<T>(-std::numeric_limits<double>::infinity());
    std::vector<adasum::nonfinite_input> bad{{size - 1, 0}};
    if (last / 2 != last) bad.push_back({static_cast<int>(last / 2), 2});
    bad.push_back({size - 1, 2});

    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto ranks = reduce_on_threads<T>(gradients, segs, adasum::rules::adasum{}, order);
      check_same_on_all_ranks(ranks);
      const auto& [gradient, found] = ranks.front();
      CHECK(found.nonfinite() == bad);
      CHECK_FALSE(found.finite());
      CHECK(std::isnan(found.orthogonality()));
      CHECK(std::isnan(found.orthogonality(2)));
      CHECK(std::isfinite(found.orthogonality(3)));
      for (const std::size_t k : {0u, 2u})
        for (std::size_t x = 0; x < segs.length(k); ++x) CHECK(std::isnan(to_double(gradient[segs.offset(k) + x])));
      const auto part = [&](const auto& values) {
        return std::vector(values.begin() + static_cast<std::ptrdiff_t>(segs.offset(3)), values.end());
      };
      const adasum::segments alone{segs.length(3)};
      CHECK(worst_error_over_bound(part(gradient), part(expected.exact.values), {expected.bounds[3]}, alone) <= 1);
    });
  }
}

TEST_CASE("squares outside the range of double" * doctest::skip(!real_holds_squares)) {
  const adasum::segments segs{5, 12, 3};
  for (const double scale : {1e-300, 1e-170, 1e155, 1e170, 1e300})
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      CAPTURE(scale);
      CAPTURE(size);
      auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 13);
      for (auto& gradient : gradients)
        for (std::size_t x = 0; x < segs.length(1); ++x) gradient[segs.offset(1) + x] *= scale;
      check_every_schedule(gradients, segs, adasum::rules::adasum{});
      check_every_schedule(gradients, segs, adasum::rules::mean{});
    }
}

TEST_CASE("gradients of very different scales") {
  const adasum::segments segs{6};
  for (const double scale : {1e140, 1e170})
    for (const int size : {2, 4, 5, 8}) {
      if (scale > 1e150 && !real_holds_squares) continue;
      CAPTURE(scale);
      CAPTURE(size);
      auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 17);
      for (std::size_t i = 0; i < gradients.size(); ++i)
        for (double& x : gradients[i]) x *= i % 2 == 0 ? 1 / scale : scale;
      if (scale < 1e150) {
        check_every_schedule(gradients, segs, adasum::rules::adasum{});
        continue;
      }
      // The weight of the shorter gradient, about the ratio of the norms, is no double any more. The result is.
      const auto expected = expectation::of<double>(adasum::rules::adasum{}, gradients, segs);
      for_each_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{}, order);
        check_same_on_all_ranks(ranks);
        CHECK(worst_error_over_bound(ranks.front().gradient, expected.exact.values, expected.bounds, segs) <= 1);
      });
    }
}

TEST_CASE("subtrees that cancel are combined vector by vector") {
  const adasum::segments segs{16, 0, 30};
  for (const int size : {4, 8}) {
    CAPTURE(size);
    // In segment 2 every odd gradient is minus the one before it but for 1e-7: the squared norm of their combination is
    // about 1e-14 of what went into it, which no double inner product still knows.
    auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 19);
    for (std::size_t i = 1; i < gradients.size(); i += 2)
      for (auto x = segs.offset(2); x < segs.total(); ++x)
        gradients[i][x] = -gradients[i - 1][x] + 1e-7 * gradients[i][x];
    check_every_schedule(gradients, segs, adasum::rules::adasum{});

    const auto direct = [&](const auto& order) {
      return reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{}, order)
          .front()
          .found.recombined_segments();
    };
    CHECK(direct(adasum::schedules::all_to_all{}) == 1);
    CHECK(direct(adasum::schedules::recursive_halving{.radix = 4}) == 1);
    CHECK(direct(adasum::schedules::recursive_halving{}) == 0);  // a pair has no subtree inside
  }
}

TEST_CASE("what is left of exactly opposed gradients is neutral, by every schedule") {
  const adasum::segments segs{7, 40};
  for (const int size : {4, 5, 8}) {
    CAPTURE(size);
    auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 29);
    for (auto x = segs.offset(1); x < segs.total(); ++x) gradients[1][x] = -gradients[0][x];
    auto expected = gradients;
    for (auto x = segs.offset(1); x < segs.total(); ++x) expected[0][x] = expected[1][x] = 0;
    std::vector<double> exact(segs.total());
    adasum::adasum_tree(adasum::serial_space{}, expected, exact, segs);
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto ranks = reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{}, order);
      check_same_on_all_ranks(ranks);
      for (auto x = segs.offset(1); x < segs.total(); ++x)
        CHECK(ranks.front().gradient[x] == doctest::Approx(exact[x]).epsilon(1e-12));
    });
  }
}

TEST_CASE("gradients that are all zero stay zero") {
  const adasum::segments segs{4, 3};
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    auto gradients = random_gradients<float>(5, segs.total(), 23);
    for (auto& gradient : gradients) std::fill(gradient.begin(), gradient.begin() + 4, 0.0f);
    const auto ranks = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order);
    check_same_on_all_ranks(ranks);
    for (std::size_t x = 0; x < 4; ++x) CHECK(ranks.front().gradient[x] == 0);
    CHECK(ranks.front().found.orthogonality(0) == 1);
    CHECK(ranks.front().found.result_norm(0) == 0);
  });
}

}  // namespace test_of_detail_engine_nonfinite_vote
