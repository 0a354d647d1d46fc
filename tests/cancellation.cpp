// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients that nearly cancel: results are as close to those of long double as their elements can be, relative to what
// is left of the gradients.
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/every_instruction_set.hpp"
#include "support/oracle.hpp"
#include "support/random_gradients.hpp"
#include "support/schedules.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_cancellation {

using namespace adasum;
using namespace adasum::test;

namespace {

constexpr double angles[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6};

/// n gradients in pairs (a, -a(1 + angle·noise)); the last one, if n is odd, by itself.
template <class T>
std::vector<std::vector<T>> nearly_opposed(std::size_t n, std::size_t length, double angle, std::uint32_t seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> noise;
  std::vector<std::vector<T>> g(n, std::vector<T>(length));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t x = 0; x < length; ++x)
      g[i][x] =
          static_cast<T>(i % 2 == 0 ? noise(bits) : -static_cast<double>(g[i - 1][x]) * (1 + angle * noise(bits)));
  return g;
}

template <class T>
double relative_error(const std::vector<T>& out, const real_vector& exact) {
  real error = 0, whole = 0;
  for (std::size_t x = 0; x < out.size(); ++x) {
    const real difference = static_cast<real>(out[x]) - exact[x];
    error += difference * difference;
    whole += exact[x] * exact[x];
  }
  return static_cast<double>(std::sqrt(error / whole));
}

/// adasum of two numbers is their mean, whatever their signs, unless one of them is zero: written so, nothing is rounded
/// and a zero is one.
oracle_node mean_unless_zero(const oracle_node& a, const oracle_node& b) {
  const real x = a.value[0], y = b.value[0];
  return {{x == 0 || y == 0 ? x + y : (x + y) / 2}};
}

/// Whole numbers of one element each: collinear, as biases are.
std::vector<std::vector<float>> scalars(const std::vector<float>& values) {
  std::vector<std::vector<float>> g;
  for (const float value : values) g.push_back({value});
  return g;
}

/// A rule of n vectors: the first one less the second, which may be much shorter than they are. Others have weight 0.
struct difference {
  static constexpr std::string_view name = "difference";
  void operator()(gram_view g, std::span<double> weights) const {
    std::ranges::fill(weights, 0.0);
    weights[0] = 0.3;
    if (g.size() > 1) weights[1] = -0.3;
  }
};

/// That of the second segment of two; the first one's result is about as long as its terms.
template <class T>
double error_of_difference(const std::vector<std::vector<T>>& g, const segments& cut, const std::vector<T>& out) {
  const auto begin = cut.offset(1);
  real_vector exact;
  for (auto x = begin; x < cut.total(); ++x)
    exact.push_back(0.3 * (static_cast<real>(g[0][x]) - static_cast<real>(g[1][x])));
  return relative_error(std::vector<T>(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end()), exact);
}

/// n gradients, of which the first two differ by an angle in their second segment.
std::vector<std::vector<float>> nearly_equal(std::size_t n, const segments& cut, double angle) {
  auto g = random_gradients<float>(n, cut.total(), 5);
  const auto opposed = nearly_opposed<float>(2, cut.length(1), angle, 11);
  for (std::size_t x = 0; x < cut.length(1); ++x) {
    g[0][cut.offset(1) + x] = opposed[0][x];
    g[1][cut.offset(1) + x] = -opposed[1][x];
  }
  return g;
}

}  // namespace

TEST_CASE("rules of n vectors: a result that is much shorter than its terms keeps its digits") {
  for (const double angle : angles)
    for (const std::size_t length : sizes{40, 5000})
      for (const std::size_t n : sizes{2, 3, 5}) {
        CAPTURE(angle);
        CAPTURE(length);
        CAPTURE(n);
        const segments cut{100, length};
        const auto g = nearly_equal(n, cut, angle);
        std::vector<float> out(cut.total());
        for (const auto set : every_instruction_set()) {
          CAPTURE(to_string(set));
          combine(serial_space(set), g, out, difference{}, cut);
          CHECK(error_of_difference(g, cut, out) <= 1e-6);
        }
        combine(threads_space(2), g, out, difference{}, cut);
        CHECK(error_of_difference(g, cut, out) <= 1e-6);
        const auto check = [&](const auto& order) {
          const auto ranks = reduce_on_threads<float>(g, cut, difference{}, order);
          check_same_on_all_ranks(ranks);
          CHECK(error_of_difference(g, cut, ranks.front().gradient) <= 1e-6);
        };
        check(schedules::all_to_all{});
        check(schedules::shared_memory{});
      }
}

TEST_CASE("two ranks, by a rule of norms alone: the digits that its weights allow") {
  for (const double angle : angles) {
    CAPTURE(angle);
    const auto g = nearly_opposed<float>(2, 5000, angle, 9);
    const auto check = [&](const auto& order) {
      const auto ranks = reduce_on_threads<float>(g, segments{5000}, rules::unit_mean{}, order);
      real_vector exact(5000);
      for (std::size_t x = 0; x < 5000; ++x)
        for (std::size_t i = 0; i < 2; ++i)
          exact[x] += static_cast<real>(ranks.front().found.weight(i, 0)) * static_cast<real>(g[i][x]);
      CHECK(relative_error(ranks.front().gradient, exact) <= 1e-6);
    };
    check(schedules::all_to_all{});
    check(schedules::shared_memory{});
    check(schedules::automatic{});
  }
}

TEST_CASE_TEMPLATE("nearly opposed: pair, tree and accumulator", T, float, double) {
  for (const double angle : angles)
    for (const std::size_t length : sizes{1, 3, 1000, 5000})
      for (const auto set : every_instruction_set()) {
        CAPTURE(angle);
        CAPTURE(length);
        CAPTURE(to_string(set));
        const serial_space exec(set);
        for (const std::size_t n : sizes{2, 4}) {
          CAPTURE(n);
          const auto g = nearly_opposed<T>(n, length, angle, 7);
          const auto exact = oracle_combine(rules::adasum{}, g, segments{length});
          std::vector<T> out(length);
          adasum_tree(exec, g, out);
          CHECK(relative_error(out, exact) <= 1e-6);
          if (n != 2) continue;
          adasum_pair(exec, g[0], g[1], out);
          CHECK(relative_error(out, exact) <= 1e-6);
          auto total = plan_accumulator<T>(exec, segments{length});
          for (const auto& gradient : g) total.add(gradient);
          CHECK(relative_error(std::vector<T>(total.gradient().begin(), total.gradient().end()), exact) <= 1e-6);
        }
      }
}

TEST_CASE("nearly opposed: every schedule, by messages and in shared memory") {
  for (const double angle : {1e-2, 1e-6})
    for (const std::size_t n : sizes{2, 4, 5}) {
      CAPTURE(angle);
      CAPTURE(n);
      constexpr std::size_t length = 300;
      const auto g = nearly_opposed<float>(n, length, angle, 3);
      const auto exact = oracle_combine(rules::adasum{}, g, segments{length});
      const auto check = [&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto ranks = reduce_on_threads<float>(g, segments{length}, rules::adasum{}, order);
        check_same_on_all_ranks(ranks);
        CHECK(relative_error(ranks.front().gradient, exact) <= 1e-6);
      };
      for_each_schedule(check);
      check(schedules::shared_memory{}, "shared_memory");
    }
}

TEST_CASE("one-element segments, folded and along the tree") {
  const std::vector<float> known{-5, -8, 6, -24, 30, 3, -24, 9, 20, -6, -27, 27};
  std::vector<float> out(1);
  combine(serial_space{}, scalars(known), out, rules::adasum_linear{});
  CHECK(out[0] == doctest::Approx(7.24951).epsilon(1e-6));

  std::mt19937 bits(1);
  std::uniform_int_distribution<int> some(-30, 30);
  for (const std::size_t n : sizes{2, 3, 7, 13, 33, 64})
    for (int repetition = 0; repetition < 300; ++repetition) {
      CAPTURE(n);
      CAPTURE(repetition);
      std::vector<float> values(n);
      for (float& value : values) value = static_cast<float>(some(bits));
      const auto g = scalars(values);
      const double longest = std::abs(std::ranges::max(values, {}, [](float x) { return std::abs(x); }));
      const auto close = [&](float got, real exact) {
        return std::abs(static_cast<real>(got) - exact) <= 1e-5L * static_cast<real>(longest);
      };
      combine(serial_space{}, g, out, rules::adasum_linear{});
      std::vector<oracle_node> leaves;
      for (const float value : values) leaves.push_back({{value}});
      oracle_node folded = leaves.front();
      for (std::size_t i = 1; i < n; ++i) folded = mean_unless_zero(folded, leaves[i]);
      CHECK(close(out[0], folded.value[0]));
      auto total = plan_accumulator<float>(serial_space{}, segments{1});
      for (const auto& gradient : g) total.add(gradient);
      CHECK(close(total.gradient()[0], folded.value[0]));
      adasum_tree(serial_space{}, g, out);
      CHECK(close(out[0], oracle_tree(leaves, mean_unless_zero).value[0]));
    }
}

}  // namespace test_of_cancellation
