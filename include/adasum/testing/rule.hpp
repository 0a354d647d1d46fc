// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/gram.hpp"
#include "../core/optional_members.hpp"
#include "../core/scalar.hpp"
#include "taken_members.hpp"

namespace adasum {

/// What check_rule is to expect of a rule beyond its concept.
struct rule_claims {
  bool symmetric = false;  ///< the order of the gradients does not matter
  double accuracy = 1e-6;  ///< relative: of weights that should be equal, where they are not computed alike
};

namespace detail {

/// The vectors that a rule is tried on.
using rule_sample = std::vector<std::vector<double>>;

/// @param dimensions  fewer than n make them linearly dependent
inline rule_sample sample_for_rule(std::size_t n, std::size_t dimensions, std::uint32_t seed) {
  std::mt19937 bits(seed);  // the same numbers on every machine, unlike those of distributions
  rule_sample vectors(n, std::vector<double>(dimensions));
  for (auto& vector : vectors)
    for (double& x : vector) x = static_cast<double>(bits()) / 0x1p31 - 0.9;
  return vectors;
}
inline rule_sample times(rule_sample vectors, double factor) {
  for (auto& vector : vectors)
    for (double& x : vector) x *= factor;
  return vectors;
}

template <class Rule>
class rule_check {
 public:
  rule_check(const Rule& rule, const rule_claims& claims) : rule_(rule), claims_(claims) {}

  /// @param n  vectors at once; two for a pairwise rule
  void run(std::size_t n) const {
    require(!std::string_view(rule_.name).empty(), "its name is empty");
    const auto usual = sample_for_rule(n, 40, 1);
    check_same_again(usual);
    check_finite(n);
    check_scale(usual);
    if (!needs_gram<Rule>)
      require(is_near(weights_of(usual), weights_of(times(usual, 0)), 0) &&
                  is_near(weights_of(usual), weights_of(sample_for_rule(n, 40, 2)), 0),
              "the weights depend on the inner products, though the rule says that it needs none");
    if (claims_.symmetric) check_symmetric(usual);
  }

 private:
  using list = std::vector<double>;

  void require(bool holds, const std::string& what) const {
    if (!holds) throw bad_input({"adasum::check_rule: ", std::string_view(rule_.name), ": ", what});
  }

  /// By a copy of the rule, as each rank has one.
  list weights_of(const rule_sample& vectors, std::size_t leaves_a = 1, std::size_t leaves_b = 1) const {
    Rule rule(rule_);
    return weights_by(rule, vectors, leaves_a, leaves_b);
  }
  list weights_by(Rule& rule, const rule_sample& vectors, std::size_t leaves_a = 1, std::size_t leaves_b = 1) const {
    const auto n = vectors.size();
    list packed;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        packed.push_back(std::inner_product(vectors[i].begin(), vectors[i].end(), vectors[j].begin(), 0.0));
    if constexpr (pairwise_rule<Rule>) {
      const pair_weights found = rule(pair_gram{packed[0], packed[1], packed[2], leaves_a, leaves_b});
      return {found.a, found.b};
    } else {
      constexpr double untouched = 12345.678;
      const gram_view gram(packed.data(), n);
      list weights(n + 1, untouched);
      const auto room = std::span(weights).first(n);
      if constexpr (requires { rule(gram, room, std::size_t{}); })
        rule(gram, room, std::size_t{});
      else
        rule(gram, room);
      require(weights.back() == untouched, "it writes past the end of the weights");
      weights.pop_back();
      require(std::ranges::find(weights, untouched) == weights.end(), "it does not write every weight");
      return weights;
    }
  }

  bool is_near(const list& a, const list& b, double accuracy) const {
    double largest = 0;
    for (const double x : a) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= accuracy * largest)) return false;
    return true;
  }

  /// Ranks hold copies, and must end with the same bits; also rules with a state, run after run.
  void check_same_again(const rule_sample& vectors) const {
    Rule first(rule_), second(rule_);
    for (int run = 0; run < 3; ++run) {
      const auto a = weights_by(first, times(vectors, 1 + run)), b = weights_by(second, times(vectors, 1 + run));
      for (std::size_t i = 0; i < a.size(); ++i)
        require(magnitude_bits(a[i]) == magnitude_bits(b[i]) && std::signbit(a[i]) == std::signbit(b[i]),
                "two copies of it give different weights for the same inner products");
    }
  }

  void require_finite(const rule_sample& vectors, const std::string& what) const {
    for (const std::size_t leaves : {1u, 3u})
      for (const double weight : weights_of(vectors, leaves, 2))
        require(is_finite(weight), "a weight is not finite for " + what);
  }
  void check_finite(std::size_t n) const {
    const auto usual = sample_for_rule(n, 40, 3);
    require_finite(usual, "vectors at any angles");
    require_finite(times(usual, 0), "vectors that are all zero");
    for (std::size_t i = 0; i < n; ++i) {
      auto vectors = usual;
      vectors[i].assign(vectors[i].size(), 0);
      require_finite(vectors, "a vector that is zero among others");
    }
    require_finite(sample_for_rule(n, 1, 4), "vectors along one line");
    rule_sample axes(n, list(n)), equal(n, list{1, 2, 3}), opposed = equal;
    for (std::size_t i = 0; i < n; ++i) {
      axes[i][i] = static_cast<double>(i + 1);
      if (i % 2 == 1) opposed[i] = {-1, -2, -3};
    }
    require_finite(axes, "orthogonal vectors");
    require_finite(equal, "equal vectors");
    require_finite(opposed, "opposite vectors");
    // As far as squares go without being rescaled by the library first.
    require_finite(times(usual, 0x1p-399), "tiny vectors");
    require_finite(times(usual, 0x1p+396), "huge vectors");
  }

  void check_scale(const rule_sample& usual) const {
    const int degree = degree_of(rule_);
    const auto expected = weights_of(usual);
    for (const double scale : {0.25, 4.0, 64.0}) {
      auto weights = weights_of(times(usual, scale));
      for (double& weight : weights) weight *= std::pow(scale, 1 - degree);
      require(is_near(expected, weights, claims_.accuracy),
              "where all vectors are multiplied by " + std::to_string(scale) +
                  ", the result is not multiplied by that to the power of degree(), which is " +
                  std::to_string(degree));
    }
  }

  void check_symmetric(const rule_sample& usual) const {
    const rule_sample reversed(usual.rbegin(), usual.rend());
    for (const std::size_t leaves : {1u, 3u}) {
      auto turned = weights_of(reversed, 2, leaves);
      std::ranges::reverse(turned);
      require(is_near(weights_of(usual, leaves, 2), turned, claims_.accuracy),
              "the weights depend on the order of the vectors");
    }
  }

  const Rule& rule_;
  rule_claims claims_;
};

}  // namespace detail

/// Checks what a rule makes of inner products of many kinds:
///
///   * copies of it give the same bits for the same numbers, call after call;
///   * weights are finite: for vectors at any angles, equal, opposite and dependent ones, tiny and huge ones, zeros;
///   * a rule for n vectors writes each weight, and nothing else;
///   * the result scales as degree() says;
///   * the inner products make no difference if the rule needs none;
///   * the order of the vectors makes none if the claims say so. (Ties are not tried, such as opposite vectors of the
///     same length: a rule may have to break them by the order.)
///
/// Whether the weights are the ones you mean, only a test of your own can say.
///
/// @param numbers  of vectors; a pairwise rule is given two
/// @return the names of the optional members that the library takes
/// @throws bad_input  saying what is wrong first
template <rule Rule>
std::vector<std::string> check_rule(const Rule& rule, const rule_claims& claims = {},
                                    const std::vector<std::size_t>& numbers = {1, 2, 3, 5, 8}) {
  const detail::rule_check<Rule> check(rule, claims);
  if constexpr (pairwise_rule<Rule>)
    check.run(2);
  else
    for (const std::size_t n : numbers) check.run(n);
  return detail::taken_members_of_rule<Rule>();
}

}  // namespace adasum
