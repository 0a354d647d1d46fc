// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From Gram matrices to weights: no buffer, no kernel.
#include <adasum/core/weigh.hpp>
#include <adasum/detail/numerics/weigh.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "support/oracle.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"

namespace test_of_core_weigh {

using namespace adasum;
using namespace adasum::detail;
using namespace adasum::test;

namespace {

/// Gram matrix, weights and verdict of one weighing.
struct weighed {
  std::vector<double> gram, weights;
  weighing quality{};

  template <class Rule>
  weighed(Rule rule, std::vector<double> packed, std::vector<std::size_t> leaves)
      : gram(std::move(packed)), weights(leaves.size(), 99) {
    weigh_scratch scratch(leaves.size());
    quality = weigh(rule, view(), leaves, weights, 0, scratch);
  }
  gram_view view() const { return {gram.data(), weights.size()}; }
};

/// The Gram matrix in long double, rounded to double.
std::vector<double> gram_of(const std::vector<std::vector<double>>& g) {
  const auto leaves = oracle_leaves(g, {0, g.front().size()});
  std::vector<double> packed(packed_size(g.size()));
  for (std::size_t i = 0; i < g.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      packed[packed_index(i, j)] = static_cast<double>(dot(leaves[i].value, leaves[j].value));
  return packed;
}

constexpr std::size_t dimension = 12;

template <class Rule>
void check_against_vectors(Rule rule) {
  for (std::size_t n = 1; n <= 20; ++n)
    for (const auto kind : {gradient_kind::independent, gradient_kind::low_rank, gradient_kind::with_zeros}) {
      CAPTURE(n);
      CAPTURE(to_string(kind));
      const auto g = random_gradients<double>(n, dimension, 30 + n, kind);
      const weighed result(rule, gram_of(g), std::vector<std::size_t>(n, 1));
      REQUIRE(result.quality == weighing::good);
      const auto expected = oracle_combine(rule, g, segments{dimension});
      real sum = 0;
      for (std::size_t x = 0; x < dimension; ++x) {
        real mixed = 0;
        for (std::size_t i = 0; i < n; ++i) mixed += static_cast<real>(result.weights[i]) * static_cast<real>(g[i][x]);
        // Weights and inner products of order 1 to 10 with 16 digits; low_rank trees cancel up to a few digits.
        REQUIRE(std::abs(mixed - expected[x]) <= 1e-10L);
        sum += mixed * mixed;
      }
      REQUIRE(std::abs(static_cast<real>(squared_norm(result.view(), result.weights)) - sum) <= 1e-9L);
    }
}

}  // namespace

TEST_CASE("a packed symmetric matrix has a place of its own for each pair") {
  for (std::size_t n = 0; n <= 12; ++n) {
    std::set<std::size_t> places;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        CHECK(packed_index(i, j) == packed_index(j, i));
        CHECK(packed_index(i, j) < packed_size(n));
        places.insert(packed_index(i, j));
      }
    CHECK(places.size() == packed_size(n));
  }
  const std::vector<double> packed{1, 2, 3, 4, 5, 6};
  const gram_view gram(packed.data(), 3);
  CHECK(gram(0, 0) == 1);
  CHECK(gram(0, 1) == 2);
  CHECK(gram(1, 2) == 5);
  CHECK(gram(2, 1) == 5);
}

TEST_CASE("weights along the tree combine as explicit vectors do") {
  SUBCASE("adasum") { check_against_vectors(rules::adasum{}); }
  SUBCASE("sum") { check_against_vectors(rules::sum{}); }
  SUBCASE("mean") { check_against_vectors(rules::mean{}); }
}

TEST_CASE("rules of two vectors") {
  const auto same = [](pair_weights w, double a, double b) { return w.a == a && w.b == b; };
  CHECK(same(rules::adasum{}({.aa = 4, .ab = 2, .bb = 1}), 0.75, 0));
  CHECK(same(rules::adasum{}({.aa = 1, .ab = 0, .bb = 1}), 1, 1));
  CHECK(same(rules::adasum{}({.aa = 0, .ab = 0, .bb = 9}), 1, 1));
  CHECK(same(rules::sum{}({.aa = 4, .ab = 2, .bb = 1}), 1, 1));
  CHECK(same(rules::mean{}({.aa = 4, .ab = 2, .bb = 1}), 0.5, 0.5));
  CHECK(same(rules::mean{}({.aa = 4, .ab = 2, .bb = 1, .leaves_a = 3, .leaves_b = 1}), 0.75, 0.25));
}

TEST_CASE("vectors that already combine several gradients count as many under mean") {
  for (const auto& leaves : {std::vector<std::size_t>{2, 1}, {2, 1, 1}, {4, 4, 1, 1, 1}}) {
    std::size_t all = 0;
    for (const auto count : leaves) all += count;
    std::vector<double> identity(packed_size(leaves.size()), 0);
    for (std::size_t i = 0; i < leaves.size(); ++i) identity[packed_index(i, i)] = 1;
    const weighed result(rules::mean{}, identity, leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i)
      CHECK(result.weights[i] == doctest::Approx(static_cast<double>(leaves[i]) / static_cast<double>(all)));
  }
}

TEST_CASE("what inner products cannot decide is told") {
  constexpr double nan_value = std::numeric_limits<double>::quiet_NaN(),
                   infinite = std::numeric_limits<double>::infinity();
  const auto quality = [](std::vector<double> gram) {
    return weighed(rules::adasum{}, std::move(gram), {1, 1}).quality;
  };
  CHECK(quality({1, 0.5, 1}) == weighing::good);
  CHECK(quality({0, 0, 1}) == weighing::good);
  CHECK(quality({0, 0, 0}) == weighing::good);
  CHECK(quality({0x1p-800, 0, 0x1p800}) == weighing::good);
  CHECK(quality({0x1p-801, 0, 1}) == weighing::needs_vectors);
  CHECK(quality({1, 0, 0x1p801}) == weighing::needs_vectors);
  CHECK(quality({1, 0, infinite}) == weighing::needs_vectors);
  CHECK(quality({1, nan_value, nan_value}) == weighing::nonfinite);
  const weighed result(rules::adasum{}, {1, nan_value, nan_value}, {1, 1});
  CHECK(std::isnan(result.weights[0]));
  CHECK(std::isnan(result.weights[1]));
  CHECK(quality({nan_value, nan_value, infinite}) == weighing::needs_vectors);
}

TEST_CASE("cancellation is told in a child, and in the result where nothing is left of it") {
  const auto quality = [](double cosine, std::size_t n) {
    // Leaves 0 and 1 of unit length at that cosine; the others orthogonal to all.
    std::vector<double> gram(packed_size(n), 0);
    for (std::size_t i = 0; i < n; ++i) gram[packed_index(i, i)] = 1;
    gram[packed_index(1, 0)] = cosine;
    return weighed(rules::adasum{}, gram, std::vector<std::size_t>(n, 1)).quality;
  };
  for (const std::size_t n : sizes{3, 4, 7, 8}) {
    CHECK(quality(-1, n) == weighing::needs_vectors);
    CHECK(quality(-1 + 1e-8, n) == weighing::needs_vectors);
    CHECK(quality(-1 + 1e-6, n) == weighing::good);
    CHECK(quality(1, n) == weighing::good);
  }
  CHECK(quality(-1, 2) == weighing::needs_vectors);
  CHECK(quality(-1 + 1e-12, 2) == weighing::good);
  const weighed sum(rules::sum{}, {1, -1, 1}, {1, 1});  // looks at no inner product, and may be given none
  CHECK(sum.quality == weighing::good);
}

TEST_CASE("squared_norm: a quadratic form, never negative, NaN where NaN is") {
  const std::vector<double> gram{4, -2, 9};
  CHECK(squared_norm({gram.data(), 2}, std::vector{1.0, 2.0}) == 4 - 8 + 36);
  const std::vector<double> cancelled{1, -1 - 1e-15, 1};
  CHECK(squared_norm({cancelled.data(), 2}, std::vector{1.0, 1.0}) == 0);
  CHECK(std::isnan(squared_norm({cancelled.data(), 2}, std::vector{std::nan(""), 1.0})));
}

}  // namespace test_of_core_weigh
