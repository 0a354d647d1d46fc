// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/testing/rule.hpp>

#include "random_gradients.hpp"

/// What tests of rules share: a little linear algebra on the vectors themselves, and properties that every rule has.
namespace adasum::test {

using vec = std::vector<double>;

inline double dot(const vec& a, const vec& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
inline double norm_of(const vec& a) { return std::sqrt(dot(a, a)); }
inline void add(vec& to, double factor, const vec& what) {
  for (std::size_t x = 0; x < to.size(); ++x) to[x] += factor * what[x];
}
inline double distance(vec a, const vec& b) {
  add(a, -1, b);
  return norm_of(a);
}

/// The combination in one segment.
template <class Rule>
vec combined(Rule&& rule, const std::vector<vec>& gradients) {
  vec out(gradients.front().size());
  combine(serial_space{}, gradients, out, rule);
  return out;
}

/// The weights in one segment.
template <class Rule>
vec weights_of(Rule&& rule, const std::vector<vec>& gradients) {
  vec out(gradients.front().size()), weights;
  const auto found = combine(serial_space{}, gradients, out, rule);
  for (std::size_t i = 0; i < gradients.size(); ++i) weights.push_back(found.weight(i, 0));
  return weights;
}

inline std::vector<vec> times(std::vector<vec> gradients, double factor) {
  for (auto& gradient : gradients)
    for (double& x : gradient) x *= factor;
  return gradients;
}

struct rule_properties {
  int degree;                 ///< rule(s·g) = s^degree · rule(g)
  bool symmetric = true;      ///< the order of the gradients does not matter
  bool one_is_itself = true;  ///< a single gradient is its own combination; if not, the unit vector along it
  double one_times = 1;       ///< … times this
  double accuracy = 1e-9;     ///< relative, of results that should be equal
  double widest_scale = 1e20;
};

template <class Rule>
void check_scaled(const Rule& rule, int degree, double scale, double accuracy = 1e-9) {
  const auto g = random_gradients<double>(5, 20, 77);
  const auto expected = combined(Rule(rule), g);
  auto got = combined(Rule(rule), times(g, scale));
  if (degree == 1)
    for (double& x : got) x /= scale;
  CAPTURE(scale);
  CAPTURE(std::string(Rule::name));
  CHECK(distance(got, expected) <= accuracy * norm_of(expected));
}

template <class Rule>
void check_rule(const Rule& rule, const rule_properties& has) {
  CAPTURE(std::string(Rule::name));
  CHECK_NOTHROW(adasum::check_rule(rule, {.symmetric = has.symmetric}));
  for (const double scale : {1 / has.widest_scale, 0.3, 7.0, has.widest_scale})
    check_scaled(rule, has.degree, scale, has.accuracy);

  const auto g = random_gradients<double>(6, 20, 5);
  const auto expected = combined(Rule(rule), g);
  if (has.symmetric) {
    auto reversed = g;
    std::ranges::reverse(reversed);
    CHECK(distance(combined(Rule(rule), reversed), expected) <= has.accuracy * norm_of(expected));
  }

  auto one = g.front();
  const auto of_one = combined(Rule(rule), {one});
  if (!has.one_is_itself) one = times({one}, 1 / norm_of(one)).front();
  one = times({one}, has.one_times).front();
  CHECK(distance(of_one, one) <= 1e-7 * norm_of(one));

  const vec zero(20, 0);
  CHECK(combined(Rule(rule), std::vector<vec>(4, zero)) == zero);
  for (const auto kind :
       {gradient_kind::with_zeros, gradient_kind::duplicate, gradient_kind::low_rank, gradient_kind::opposed})
    for (const std::size_t n : {2u, 3u, 9u}) {
      CAPTURE(std::string(to_string(kind)));
      CAPTURE(n);
      const auto edge = random_gradients<double>(n, 20, n, kind);
      const auto weights = weights_of(Rule(rule), edge);
      const auto result = combined(Rule(rule), edge);
      vec from_weights(20, 0);
      double mass = 0;
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(std::isfinite(weights[i]));
        add(from_weights, weights[i], edge[i]);
        mass += std::abs(weights[i]) * norm_of(edge[i]);
      }
      CHECK(distance(from_weights, result) <= 1e-13 * mass);
    }
  // Equal gradients: the result lies along them.
  const std::vector<vec> equal(5, g.front());
  auto direction = combined(Rule(rule), equal);
  const double cosine = dot(direction, g.front()) / norm_of(direction) / norm_of(g.front());
  CHECK(cosine == doctest::Approx(1));
}

/// @param whole  a rule as it is by default. @param each  the same rule, by segments
template <class Rule>
void check_whole_model(const Rule& whole, const Rule& each) {
  CAPTURE(std::string(Rule::name));
  CHECK(whole.whole_model());
  CHECK_FALSE(each.whole_model());
}

/// One gradient of four holds NaN in one of three segments: what docs/inf_and_nan.md says of it, under each policy.
template <class Rule>
void check_one_nonfinite_segment(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  const segments cut{6, 8, 6};
  const auto finite = random_gradients<double>(4, 20, 12);
  auto g = finite, others = finite;
  g[2][9] = std::numeric_limits<double>::quiet_NaN();
  others.erase(others.begin() + 2);
  const auto result_of = [&](const std::vector<vec>& gradients, const options& choices = {}) {
    vec out(20, 12345);
    Rule used(rule);
    combine(serial_space{}, gradients, out, used, cut, choices);
    return out;
  };
  const auto part = [&](const vec& v, std::size_t k) {
    return vec(v.begin() + static_cast<std::ptrdiff_t>(cut.offset(k)),
               v.begin() + static_cast<std::ptrdiff_t>(cut.offset(k + 1)));
  };
  const auto is_nan = [](const vec& v) { return std::ranges::all_of(v, [](double x) { return std::isnan(x); }); };

  const auto propagated = result_of(g), of_all = result_of(finite), of_others = result_of(others);
  const bool whole_model = detail::rule_ref(rule).weighs_whole_model();
  for (std::size_t k = 0; k < cut.size(); ++k) {
    CAPTURE(k);
    const bool is_concerned = whole_model || k == 1;
    if (!is_concerned)
      CHECK(part(propagated, k) == part(of_all, k));
    else if (leaves_out_nonfinite<Rule>)
      CHECK(part(propagated, k) == part(of_others, k));
    else
      CHECK(is_nan(part(propagated, k)));
  }
  CHECK(distance(result_of(g, {.nonfinite = nonfinite_policy::exclude}), of_others) <= 1e-12 * norm_of(of_others));

  vec out(20, 12345);
  Rule used(rule);
  CHECK_THROWS_AS(combine(serial_space{}, g, out, used, cut, {.nonfinite = nonfinite_policy::raise}), nonfinite_error);
  CHECK(out == vec(20, 12345));
}

}  // namespace adasum::test
