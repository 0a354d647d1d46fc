// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>

#include "../../support/random_gradients.hpp"
#include "../../support/eigen_scalars.hpp"
#include "../../support/scalars.hpp"
#include "quad.hpp"

/// A rule of the library against its definition in 128 bits, on gradients of every kind.
namespace adasum::test::reference {

#ifdef ADASUM_TEST_EIGEN
using half = Eigen::half;
#else
using half = _Float16;
#endif

/// What a definition gives for some gradients.
struct expected_result {
  quads result;
  /// By how much the library's result may differ, over 16·2⁻⁵²: derived beside each definition. The 16 stands for an entry
  /// of a Gram matrix, |error of gᵢ·gⱼ| ≤ (length/lanes + lanes)·2⁻⁵³·‖gᵢ‖‖gⱼ‖ ≤ 32·2⁻⁵³ for the lengths used here, all
  /// other roundings being counted.
  quad error = 0;
  /// The definition jumps here, or so close by that inner products in double cannot tell.
  bool excluded = false;
};

enum class family { ordinary, collinear, opposed, duplicated, badly_scaled, far_apart, short_ones };
inline constexpr std::array families{family::ordinary,     family::collinear, family::opposed,   family::duplicated,
                                     family::badly_scaled, family::far_apart, family::short_ones};
constexpr std::string_view to_string(family kind) {
  constexpr std::array<std::string_view, 7> names{
      "ordinary", "collinear", "opposed", "duplicated", "badly scaled", "far apart", "fewer elements than gradients"};
  return names[static_cast<std::size_t>(kind)];
}

template <scalar T>
std::vector<std::vector<T>> gradients_of(family kind, std::size_t n, std::uint64_t seed) {
  uniform_numbers uniform(1000 * seed + n);
  const std::size_t length = kind == family::short_ones ? std::max<std::size_t>(1, n / 3) : n + 20;
  const double widest = format_of<T> == number_format::binary16 ? 2 : 12;  // decimal digits between lengths
  const auto one = uniform.vector(length);
  std::vector<std::vector<T>> gradients;
  std::vector<double> before;
  for (std::size_t i = 0; i < n; ++i) {
    auto v = uniform.vector(length);
    const double factor = uniform();
    for (std::size_t x = 0; x < length; ++x) switch (kind) {
        case family::ordinary:
        case family::short_ones: break;
        // Multiples of 1/8 times whole numbers: exactly collinear in any type.
        case family::collinear: v[x] = std::floor(4 * one[x]) * (std::floor(8 * factor) + 0.5) / 8; break;
        case family::opposed: v[x] = i % 2 == 0 ? v[x] : -before[x] + v[x] / 8; break;
        case family::duplicated: v[x] = i % 3 == 2 ? before[x] : v[x]; break;
        case family::badly_scaled: v[x] *= std::pow(10, -widest * (factor + 1) / 2); break;
        case family::far_apart: v[x] *= std::pow(10, -80 * (factor + 1)); break;  // to 1e-160
      }
    gradients.push_back(from_doubles<T>(v));
    before = v;
  }
  return gradients;
}

struct tally {
  std::size_t compared = 0, excluded = 0;
  double worst = 0;  ///< error over bound
};

/// The rule on one set of gradients.
template <scalar T, class Rule, class Definition>
void compare(const Rule& rule, const Definition& definition, const std::vector<std::vector<T>>& gradients,
             tally& total) {
  const auto n = gradients.size(), length = gradients.front().size();
  quad_matrix exact;
  for (const auto& gradient : gradients) {
    quads v;
    for (const T x : gradient) v.push_back(to_double(x));
    exact.push_back(std::move(v));
  }
  std::vector<T> out(length);
  Rule used(rule);
  const auto found = combine(serial_space{}, gradients, out, used);
  quads weights, stored;
  for (std::size_t i = 0; i < n; ++i) weights.push_back(found.weight(i, 0));
  for (const T x : out) stored.push_back(to_double(x));
  const quad terms = mass(exact, weights);
  REQUIRE(finiteq(terms));

  // What is stored is the combination by these weights: each of n terms and of their sum is rounded to float, or for
  // doubles to double, and the result to T; below the smallest normal T, to its spacing.
  const double mixing = std::max(unit_roundoff(format_of<T>), 0x1p-53);
  const quad spacing = format_of<T> == number_format::binary16 ? 0x1p-24 : 0;
  const auto combined = combination(exact, weights);
  CHECK(static_cast<double>(distance(stored, combined)) <=
        static_cast<double>((mixing + static_cast<double>(n) * (sizeof(T) < 8 ? 0x1p-24 : 0x1p-53)) * terms +
                            spacing * sqrtq(static_cast<quad>(length))));

  const expected_result expected = definition(exact, used, weights);
  if (expected.excluded) {
    ++total.excluded;
    return;
  }
  ++total.compared;
  // One or two vectors of floats are measured in float lanes, unless the rule asks for more.
  const bool in_floats = sizeof(T) < 8 && n <= 2 && !needs_accurate_gram<Rule>;
  const quad bound = (in_floats ? 0x1p-18 : 16 * epsilon) * expected.error;
  const quad error = distance(combined, expected.result);
  CHECK(static_cast<double>(error) <= static_cast<double>(bound));
  if (bound > 0) total.worst = std::max(total.worst, static_cast<double>(error / bound));
}

/// On every family, for many numbers of gradients; at most a given share of these may be excluded in each family.
template <scalar T, class Rule, class Definition>
void compare_all(const Rule& rule, const Definition& definition, const std::vector<std::size_t>& numbers,
                 double may_be_excluded, const std::vector<family>& kinds = {}) {
  for (const auto kind : families) {
    if (!kinds.empty() && std::ranges::find(kinds, kind) == kinds.end()) continue;
    if (kind == family::far_apart && sizeof(T) < 8) continue;
    tally total;
    for (const auto n : numbers)
      for (std::uint64_t seed = 1; seed <= (n > 20 ? 1u : n > 10 ? 2u : 4u); ++seed) {
        CAPTURE(std::string(Rule::name));
        CAPTURE(std::string(to_string(kind)));
        CAPTURE(sizeof(T));
        CAPTURE(n);
        CAPTURE(seed);
        compare<T>(rule, definition, gradients_of<T>(kind, n, seed), total);
      }
    MESSAGE(std::string(Rule::name), ", ", std::string(to_string(kind)), ", ", sizeof(T), " bytes: ", total.compared,
            " compared, ", total.excluded, " excluded, worst error over bound ", total.worst);
    CHECK(static_cast<double>(total.excluded) <=
          may_be_excluded * static_cast<double>(total.excluded + total.compared));
  }
}

/// Without those so far apart in length that distances from a long one are all but equal, and powers of lengths too large.
inline const std::vector<family> of_like_lengths{family::ordinary,   family::collinear,    family::opposed,
                                                 family::duplicated, family::badly_scaled, family::short_ones};
inline const std::vector<std::size_t> usual_numbers{1, 2, 3, 4, 5, 8, 17, 33, 64};

/// double, float and a half.
template <class Rule, class Definition>
void compare_types(const Rule& rule, const Definition& definition,
                   const std::vector<std::size_t>& numbers = usual_numbers, double may_be_excluded = 0,
                   const std::vector<family>& kinds = {}) {
  compare_all<double>(rule, definition, numbers, may_be_excluded, kinds);
  compare_all<float>(rule, definition, numbers, may_be_excluded, kinds);
  compare_all<half>(rule, definition, numbers, may_be_excluded, kinds);
}

}  // namespace adasum::test::reference
