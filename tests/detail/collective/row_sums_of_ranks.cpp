// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/collective/row_sums_of_ranks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <adasum/rules/adacons.hpp>
#include <adasum/rules/unit_mean.hpp>

#include "support/random_gradients.hpp"
#include "support/rule_checks.hpp"
#include "support/scalars.hpp"
#include "support/staged_reduction.hpp"

namespace test_of_detail_collective_row_sums_of_ranks {

/// The numbers that rules of norms and row sums are given along several stages: how accurate they are, and in which range.

using namespace adasum;
using namespace adasum::test;

namespace {

/// The numbers that it is given, and equal weights.
struct recorder {
  static constexpr std::string_view name = "recorder";
  bool whole = false;
  std::vector<std::vector<double>> norms{}, row_sums{};  // by segment

  bool whole_model() const { return whole; }
  void operator()(row_sums_view sums, std::span<double> weights, std::size_t segment) {
    norms.resize(std::max(norms.size(), segment + 1));
    row_sums.resize(norms.size());
    norms[segment].clear();
    row_sums[segment].clear();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      norms[segment].push_back(sums.norm(i));
      row_sums[segment].push_back(sums.row_sum(i));
      weights[i] = 1 / static_cast<double>(sums.size());
    }
  }
};
static_assert(row_sum_rule<recorder> && row_sum_rule<rules::adacons> && row_sum_rule<rules::unit_mean>);
static_assert(!needs_row_sums<rules::unit_mean> && needs_row_sums<rules::adacons>);

template <scalar T>
std::vector<vec> in_double(const std::vector<std::vector<T>>& gradients) {
  std::vector<vec> converted;
  for (const auto& gradient : gradients) {
    converted.emplace_back();
    for (const T x : gradient) converted.back().push_back(to_double(x));
  }
  return converted;
}

/// The roundings on the way from a gradient to the mean: in a stage of n members at most n products and sums.
double roundings(int size, std::size_t radix) {
  double count = 0;
  for (int rank = 0; rank < size; ++rank) {
    double here = 0;
    for (const auto& stage : staged{radix}.stages(rank, size, {.length = 100}))
      here += static_cast<double>(stage.members.size()) + 1;
    count = std::max(count, here);
  }
  return count;
}

template <scalar T>
double unit() {
  return unit_roundoff(format_of<T>);
}

/// Norms and row sums are those of the vectors, within the bound that the class states; they are the same on all ranks.
template <scalar T>
void check_numbers(int size, std::size_t radix, bool whole_model) {
  const segments segs{30, 0, 1, 69};
  const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), 100, 3, gradient_kind::scaled);
  const auto exact = in_double(gradients);
  const auto found = results_of(on_ranks(size, [&](const thread_communicator& comm) {
    auto plan = plan_allreduce<T>(serial_space{}, comm, segs, recorder{.whole = whole_model}, staged{radix});
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    plan(gradient);
    return plan.current_rule();
  }));
  for (const auto& rank : found) {
    CHECK(rank.norms == found.front().norms);
    CHECK(rank.row_sums == found.front().row_sums);
  }
  const segments cut = whole_model ? segments{100} : segs;
  const double r = roundings(size, radix) * unit<T>();
  for (std::size_t k = 0; k < cut.size(); ++k) {
    const auto [begin, end] = segments_view(cut).range(k);
    const auto part = [begin = begin, end = end](const vec& g) {
      return vec(g.begin() + static_cast<std::ptrdiff_t>(begin), g.begin() + static_cast<std::ptrdiff_t>(end));
    };
    vec sum(end - begin, 0);
    double lengths = 0;
    for (const auto& g : exact) add(sum, 1, part(g)), lengths += norm_of(part(g));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const auto mine = part(exact[i]);
      const double norm = norm_of(mine);
      CAPTURE(k);
      CAPTURE(i);
      // Inner products of two vectors may be made in lanes of float.
      const double products = sizeof(T) < 8 ? 100 * 0x1p-24 : 100 * 0x1p-53;
      CHECK(std::abs(found.front().norms[k][i] - norm) <= products * norm);
      CHECK(std::abs(found.front().row_sums[k][i] - dot(mine, sum)) <=
            (r * (1 + r) + products) * norm * lengths + std::numeric_limits<double>::min());
    }
  }
}

}  // namespace

TEST_CASE("norms and row sums: within the bound, the same on all ranks") {
  for (const int size : staged_rank_counts)
    for (const std::size_t radix : {0u, 2u, 4u})
      for (const bool whole_model : {false, true}) {
        CAPTURE(size);
        CAPTURE(radix);
        CAPTURE(whole_model);
        check_numbers<double>(size, radix, whole_model);
        check_numbers<float>(size, radix, whole_model);
#if ADASUM_HAS_FLOAT16
        check_numbers<_Float16>(size, radix, whole_model);
#endif
      }
}

TEST_CASE("squares out of the range of double: as in range, times a power of two") {
  const segments segs{10, 20};
  for (const int size : {6, 8})  // several stages
    for (const int exponent : {-1000, -520, 520, 1000}) {
      CAPTURE(size);
      CAPTURE(exponent);
      const auto near_1 = random_gradients<double>(static_cast<std::size_t>(size), 30, 4);
      auto far = near_1;
      for (auto& gradient : far)
        for (double& x : gradient) x = std::ldexp(x, exponent);
      const auto check = [&](const auto& rule, int degree) {
        const auto expected = reduce<double>(size, segs, rule, 2, [&](std::uint64_t) { return near_1; });
        const auto got = reduce<double>(size, segs, rule, 2, [&](std::uint64_t) { return far; });
        check_same_on_all_ranks(got);
        auto back = got[0].gradient;
        for (double& x : back) x = std::ldexp(x, -exponent * degree);
        CHECK(distance(back, expected[0].gradient) <= 1e-13 * norm_of(expected[0].gradient));
        CHECK(std::ldexp(got[0].found.norm(1, 1), -exponent) ==
              doctest::Approx(expected[0].found.norm(1, 1)).epsilon(1e-14));
        CHECK(std::ldexp(got[0].found.result_norm(1), -exponent * degree) ==
              doctest::Approx(expected[0].found.result_norm(1)).epsilon(1e-13));
        CHECK(got[0].found.fallbacks() == expected[0].found.fallbacks());
      };
      check(rules::adacons{}, 0);
      check(rules::adacons{.scale = rules::adacons::scaling::mean_norm, .per_segment = true}, 1);
      check(rules::unit_mean{}, 0);
    }
}

#if ADASUM_HAS_FLOAT16
TEST_CASE("16-bit gradients whose sum overflows") {
  const auto ranks =
      reduce<_Float16>(8, segments{4}, rules::adacons{.scale = rules::adacons::scaling::mean_norm}, 2,
                       [](std::uint64_t) { return std::vector(8, std::vector(4, static_cast<_Float16>(40000.0f))); });
  for (const auto x : ranks[0].gradient) CHECK(to_double(x) == doctest::Approx(40000).epsilon(1e-2));
  CHECK(ranks[0].found.fallbacks() == 0);
}
#endif

}  // namespace test_of_detail_collective_row_sums_of_ranks
