// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/cagrad.hpp>
#include <adasum/rules/eigen/conflict_free.hpp>
#include <adasum/rules/eigen/dualproj.hpp>
#include <adasum/rules/eigen/fairgrad.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>
#include <adasum/rules/eigen/nash_mtl.hpp>
#include <adasum/rules/eigen/upgrad.hpp>

#include "definitions.hpp"
#include "eigenvalues.hpp"

/// Rules that solve something: convex programs by an interior-point method (the library's are active-set methods),
/// pseudo-inverses by eigenvalues in 128 bits. R is the Gram matrix of the unit gradients, κ the condition number of what of
/// it does not count as zero.
namespace adasum::test::reference {

/// What counts as zero beside the largest eigenvalue, by the rules' own definition, n·2⁻⁴⁸.
struct directions {
  explicit directions(const quad_matrix& g) : unit(unit_vectors(g)), r(gram_of(unit)), eigen(r) {
    const quad largest = *std::ranges::max_element(eigen.values);
    const quad zero = static_cast<quad>(g.size()) * 0x1p-48_q * largest;
    quad least = largest;
    for (const quad lambda : eigen.values) {
      counts.push_back(lambda > zero);
      near = near || (lambda > 1e-2_q * zero && lambda < 1e2_q * zero);
      if (counts.back()) least = std::min(least, lambda);
    }
    condition = least > 0 ? largest / least : 1;
    regular = std::ranges::find(counts, false) == counts.end();
  }
  /// Σ f(λ) v (v·x)
  template <class Function>
  quads apply(const Function& f, const quads& x) const {
    quads result(x.size());
    for (std::size_t k = 0; k < counts.size(); ++k)
      if (counts[k]) add(result, f(eigen.values[k]) * dot(eigen.vectors[k], x), eigen.vectors[k]);
    return result;
  }

  quad_matrix unit, r;
  symmetric_eigen eigen;
  std::vector<bool> counts;
  quad condition = 1;
  bool near = false, regular = true;
};

/// Those of gradients that several rules are given, found once.
inline const directions& directions_of(const quad_matrix& g) {
  static std::map<quad_matrix, directions> found;
  return found.try_emplace(g, g).first->second;
}

inline quads inverses(const quads& lengths) {
  quads result;
  for (const quad length : lengths) result.push_back(length > 0 ? 1 / length : 0);
  return result;
}

/// v is known to n·κ of itself, Σv to n·κ·Σ|v|.
inline expected_result define(const rules::imtl_g& rule, const quad_matrix& g) {
  const auto& r = directions_of(g);
  auto v = r.apply([](quad lambda) { return 1 / lambda; }, quads(g.size(), 1));
  const auto scale = inverses(lengths_of(g));
  quad absolute = 0;
  for (std::size_t i = 0; i < g.size(); ++i) absolute += fabsq(v[i] *= scale[i]);
  const auto n = static_cast<quad>(g.size());
  const quad accuracy = n * r.condition, projections = norm(r.apply([](quad) { return 1; }, quads(g.size(), 1)));
  const quad margin = projections > rule.guard * sqrtq(n) ? sum(v) - rule.guard * absolute : -1;
  const bool near = r.near || fabsq(margin) <= 32 * epsilon * accuracy * absolute || 16 * epsilon * accuracy > 0.01_q;
  if (margin <= 0) return from_weights(g, equal_weights(g.size()), 0, near);
  const quads weights = times(v, 1 / sum(v));
  return from_weights(g, weights, accuracy * mass(g, weights) * (1 + absolute / sum(v)), near);
}

inline expected_result define(const rules::conflict_free& rule, const quad_matrix& g) {
  const auto& r = directions_of(g);
  const auto lengths = lengths_of(g), scale = inverses(lengths);
  const quads ones(g.size(), 1);
  const auto x = r.apply([](quad lambda) { return 1 / lambda; }, ones), slopes = r.apply([](quad) { return 1; }, ones);
  const quad accuracy = static_cast<quad>(g.size()) * r.condition;
  const quad margin = norm(slopes) - rule.guard * norm(ones);
  const bool near = r.near || fabsq(margin) <= 32 * epsilon * accuracy * norm(ones) || 16 * epsilon * accuracy > 0.01_q;
  if (margin <= 0) return from_weights(g, equal_weights(g.size()), 0, near);
  const quads u = combination(r.unit, x);
  quad projections = 0, terms = 0;
  for (std::size_t i = 0; i < g.size(); ++i) projections += dot(g[i], u), terms += lengths[i];
  quads weights = times(x, projections / dot(u, u));
  for (std::size_t i = 0; i < g.size(); ++i) weights[i] *= scale[i];
  // Slopes, x and ‖u‖² = x·1 to n·κ of themselves; the projections add up with both signs.
  const quad cancelled = projections != 0 ? terms * norm(ones) / fabsq(projections) : 1;
  return from_weights(g, weights, accuracy * mass(g, weights) * (1 + cancelled) * (1 + dot(x, x) / dot(u, u)), near);
}

/// Compared where the gradients are independent, to n·κ times the longest length over the shortest.
inline expected_result define(const rules::aligned_mtl&, const quad_matrix& g) {
  const auto& r = directions_of(g);
  const auto lengths = lengths_of(g);
  const symmetric_eigen own(gram_of(g));
  const quad least = *std::ranges::min_element(own.values);
  quads weights(g.size());
  for (std::size_t k = 0; k < g.size() && least > 0; ++k)
    add(weights, sqrtq(least / own.values[k]) * sum(own.vectors[k]) / static_cast<quad>(g.size()), own.vectors[k]);
  const quad ratio = *std::ranges::max_element(lengths) / *std::ranges::min_element(lengths);
  const quad accuracy = static_cast<quad>(g.size()) * r.condition * ratio;
  return from_weights(g, weights, accuracy * mass(g, weights),
                      !r.regular || r.near || 16 * epsilon * accuracy > 0.01_q);
}

// ── convex programs ──

/// Of ½ (x + h)ᵀR(x + h).
inline auto quadratic(const quad_matrix& r, const quads& h) {
  return [&r, h](quads x) { return local_model{multiply(r, add(x, 1, h)), r}; };
}

/// The library stops at gᵢ·r ≥ r·r - 10⁻¹³‖gᵢ‖M. With c* and r* of the minimum, ‖r - r*‖² ≤ r·r - r·r* = Σ c*ᵢ(r·r - gᵢ·r),
/// which is at most 10⁻¹³ M(c*) M; and inner products add 16·2⁻⁵² n of the same. So the error is at most √(10⁻¹³ + …) of
/// the mass; where R is regular, that squared times κ.
inline expected_result define(const rules::min_norm& rule, const quad_matrix& g, const quads& found) {
  const auto lengths = lengths_of(g);
  const auto r = gram_of(unit_vectors(g));
  const quad shortest = *std::ranges::min_element(lengths);
  const auto n = g.size();
  if (shortest == 0) return {quads(g.front().size()), 0, false};
  const quads ratios = times(inverses(lengths), shortest);
  quads x(n, 1 / sum(ratios));
  x = minimum(quadratic(r, quads(n)), x, ratios);
  quads weights;
  for (std::size_t i = 0; i < n; ++i) weights.push_back(x[i] * ratios[i]);
  const quad unit = 16 * epsilon, least = rule.tolerance + unit * static_cast<quad>(n);
  const quad error = std::min(sqrtq(least), 4 * least * directions_of(g).condition);
  return from_weights(g, weights, error / unit * std::max(mass(g, weights), mass(g, found)));
}

/// The library stops where the slope of each direction is at least -η, η = n·2⁻⁴⁸ M, or leaves out one that depends on
/// others. With r = Σ vᵢuᵢ, r* = Σ v*ᵢuᵢ: ‖r - r*‖² ≤ η Σ(v* - h) + the roundings of (v - h)·Rv, n·2⁻⁴⁸ M², so the error is at
/// most √(2n·2⁻⁴⁸) M; where R is regular, that squared times κ.
inline quad error_of_cone(const quad_matrix& g, quad terms) {
  const quad least = 2 * static_cast<quad>(g.size()) * 0x1p-48_q;
  return std::min(sqrtq(least), 4 * least * directions_of(g).condition) * terms / (16 * epsilon);
}
inline quads shortest_above(const quad_matrix& r, const quads& h) {
  quads y = minimum(quadratic(r, h), quads(h.size(), 1));
  return add(y, 1, h);
}
inline expected_result define(const rules::dualproj&, const quad_matrix& g, const quads& found) {
  const auto lengths = lengths_of(g);
  const quad longest = *std::ranges::max_element(lengths);
  const auto unit = unit_vectors(g);
  const quads v =
      times(shortest_above(gram_of(unit), times(lengths, 1 / longest)), longest / static_cast<quad>(g.size()));
  auto expected = from_weights(unit, v);
  expected.error += error_of_cone(g, std::max(mass(unit, v), mass(g, found)));
  return expected;
}
inline expected_result define(const rules::upgrad&, const quad_matrix& g, const quads& found) {
  const auto lengths = lengths_of(g);
  const auto unit = unit_vectors(g), r = gram_of(unit);
  quads total(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    quads h(g.size());
    h[i] = 1;
    add(total, lengths[i] / static_cast<quad>(g.size()), shortest_above(r, h));
  }
  auto expected = from_weights(unit, total);
  expected.error += error_of_cone(g, std::max(mass(unit, total), mass(g, found)));
  return expected;
}

/// w of argmin g_w·ḡ + √φ‖g_w‖; ν is found to 10⁻¹⁴, and g_w as by min_norm, to 10⁻¹³ n κ of what is added.
inline expected_result define(const rules::cagrad& rule, const quad_matrix& g, const quads& found) {
  const auto n = g.size();
  const auto gram = gram_of(g);
  const quads mean = combination(g, equal_weights(n)), with_mean = multiply(gram, equal_weights(n));
  const quad radius = rule.c * norm(mean), condition = directions_of(g).condition;
  if (radius == 0) return from_weights(g, equal_weights(n));
  const quad unit = dot(with_mean, with_mean) > 0 ? norm(with_mean) : 1;
  const auto model = [&](const quads& w) {
    quads slope = multiply(gram, w);
    const quad length = sqrtq(dot(w, slope));
    quad_matrix curvature = gram;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        curvature[i][j] = radius / unit * (gram[i][j] / length - slope[i] * slope[j] / (length * length * length));
    slope = times(slope, radius / length / unit);
    add(slope, 1 / unit, with_mean);
    return local_model{slope, curvature};
  };
  const quads w = minimum(model, equal_weights(n), quads(n, 1));
  const quad length = norm(combination(g, w));
  quads weights = equal_weights(n);
  add(weights, radius / length, w);
  const quad accuracy = 1e-13_q * static_cast<quad>(n) * condition;
  return from_weights(g, weights, accuracy / (16 * epsilon) * std::max(mass(g, weights), mass(g, found)),
                      accuracy > 0.01_q || length < 1e-5_q * mass(g, w));
}

/// β > 0 with Rβ = k β^(-1/a), by Newton's method from the library's weights: the solution is the only one, so what it
/// converges to is it.
inline bool solve_fairly(const quad_matrix& r, const quads& k, quad a, quads& beta) {
  for (int round = 0; round < 60; ++round) {
    auto curvature = r;
    quads slope = multiply(r, beta);
    quad residual = 0;
    for (std::size_t i = 0; i < beta.size(); ++i) {
      const quad barrier = k[i] * powq(beta[i], -1 / a);
      slope[i] -= barrier;
      residual = std::max(residual, fabsq(slope[i]) / barrier);
      curvature[i][i] += barrier / beta[i] / a;
    }
    if (residual < 1e-28_q) return true;
    add(beta, -1, factors<quad>(curvature).solve(slope));
    if (!(*std::ranges::min_element(beta) > 0)) return false;
  }
  return false;
}
/// @param length  of the result; 0: √n
inline expected_result fair(const quad_matrix& g, quad a, quad length, bool is_mean, const quads& found) {
  const auto n = g.size();
  const auto lengths = lengths_of(g);
  const auto unit = unit_vectors(g), r = gram_of(unit);
  if (is_mean) {  // there is no vector with a positive product with all: the shortest of their hull is 0
    const quads x = minimum(quadratic(r, quads(n)), equal_weights(n), quads(n, 1));
    CHECK(static_cast<double>(norm(combination(unit, x))) <= 1e-6);
    return from_weights(g, equal_weights(n), 0, true);
  }
  quads k, beta;
  for (const quad own : lengths) k.push_back(powq(own / (sum(lengths) / static_cast<quad>(n)), 1 / a - 1));
  for (std::size_t i = 0; i < n; ++i) beta.push_back(found[i] * lengths[i]);
  // Found is β times a factor: Rβ ∝ k β^(-1/a) says which.
  const quad factor = beta[0] > 0 ? powq(k[0] * powq(beta[0], -1 / a) / multiply(r, beta)[0], a / (1 + a)) : 0;
  beta = times(beta, factor);
  const quad accuracy = static_cast<quad>(n) * directions_of(g).condition;
  if (16 * epsilon * accuracy > 1e-6_q) return {quads(g.front().size()), 0, true};
  const bool solved = solve_fairly(r, k, a, beta);
  CHECK(solved);
  if (!solved) return {quads(g.front().size()), 0, true};
  const quad own = norm(combination(unit, beta));
  const quads weights = times(beta, (length == 0 ? sqrtq(static_cast<quad>(n)) : length) / own);
  return from_weights(unit, weights, accuracy * mass(unit, weights));
}
inline expected_result define(const rules::nash_mtl& rule, const quad_matrix& g, const quads& found) {
  return fair(g, 1, 0, rule.fallbacks > 0, found);
}
inline expected_result define(const rules::fairgrad& rule, const quad_matrix& g, const quads& found) {
  return fair(g, rule.alpha, sum(lengths_of(g)) / static_cast<quad>(g.size()), rule.fallbacks > 0, found);
}

}  // namespace adasum::test::reference
