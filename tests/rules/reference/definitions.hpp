// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include <adasum/rules/adacons.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/adasum_linear.hpp>
#include <adasum/rules/centred_clipping.hpp>
#include <adasum/rules/geometric_median.hpp>
#include <adasum/rules/gradient_agreement_filtering.hpp>
#include <adasum/rules/gradvac.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/rules/multi_krum.hpp>
#include <adasum/rules/orders.hpp>
#include <adasum/rules/pcgrad.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/rules/unit_mean.hpp>

#include "check.hpp"

/// The rules as their papers define them, on the gradients themselves; nothing but the orders of pcgrad and gradvac (shared_order) is
/// taken from the library. `error` is in units of 16·2⁻⁵², M(w) = Σ|wᵢ|‖gᵢ‖.
namespace adasum::test::reference {

inline quads equal_weights(std::size_t n) { return quads(n, 1 / static_cast<quad>(n)); }
inline expected_result from_weights(const quad_matrix& g, const quads& weights, quad error = 0, bool excluded = false) {
  return {combination(g, weights), error + mass(g, weights), excluded};
}

inline expected_result define(const rules::sum&, const quad_matrix& g) { return from_weights(g, quads(g.size(), 1)); }
inline expected_result define(const rules::mean&, const quad_matrix& g) {
  return from_weights(g, equal_weights(g.size()));
}
inline expected_result define(const rules::unit_mean&, const quad_matrix& g) {
  return from_weights(unit_vectors(g), equal_weights(g.size()));
}

// ── adasum ──

/// A node of the tree, with a bound of its error from inner products: a node of norm r and mass M is known to M·M/r (its
/// square is to M²); where M/r > 2¹², it is made from the vectors in double, to M.
struct node {
  quads value;
  quad mass, error = 0;
  bool excluded = false;
};
/// With x = ‖b‖/‖a‖: the derivative of a + b - (a·b)(a/2a·a + b/2b·b) by a is no more than 3/2 (1 + x), and the other way
/// round.
inline node merge(const node& a, const node& b) {
  const quad aa = dot(a.value, a.value), bb = dot(b.value, b.value), ab = dot(a.value, b.value);
  const quad wa = aa > 0 ? 1 - ab / (2 * aa) : 1, wb = bb > 0 ? 1 - ab / (2 * bb) : 1;
  node result{times(a.value, wa), fabsq(wa) * a.mass + fabsq(wb) * b.mass};
  add(result.value, wb, b.value);
  const auto grown = [](const node& own, quad square, quad other) {
    return square > 0 ? own.error * 3 / 2 * (1 + sqrtq(other / square)) : 0;
  };
  result.error = grown(a, aa, bb) + grown(b, bb, aa) + result.mass;
  const quad norm2 = dot(result.value, result.value);
  if (norm2 > 0) result.error += result.mass * std::min<quad>(result.mass / sqrtq(norm2), 0x1p12);
  // What is left of gradients that cancel has the direction of rounding errors, or none.
  result.excluded = a.excluded || b.excluded || (norm2 > 0 && norm2 < 1e-20_q * result.mass * result.mass);
  return result;
}
/// A prime number of them: those that a power of two leaves over are paired first.
inline node merge_prime(std::vector<node> nodes) {
  while (nodes.size() > 1) {
    std::size_t power = 1;
    while (2 * power <= nodes.size()) power *= 2;
    const std::size_t pairs = power == nodes.size() ? power / 2 : nodes.size() - power;
    std::vector<node> next;
    for (std::size_t k = 0; k < pairs; ++k) next.push_back(merge(nodes[2 * k], nodes[2 * k + 1]));
    next.insert(next.end(), nodes.begin() + static_cast<std::ptrdiff_t>(2 * pairs), nodes.end());
    nodes = std::move(next);
  }
  return nodes[0];
}
/// Each p neighbours become one, for every prime factor p of their number in ascending order.
inline expected_result define(const rules::adasum&, const quad_matrix& g) {
  std::vector<node> nodes;
  for (const auto& v : g) nodes.push_back({v, norm(v)});
  for (std::size_t p = 2; nodes.size() > 1; ++p)
    while (nodes.size() % p == 0) {
      std::vector<node> next;
      for (auto first = nodes.begin(); first != nodes.end(); first += static_cast<std::ptrdiff_t>(p))
        next.push_back(merge_prime({first, first + static_cast<std::ptrdiff_t>(p)}));
      nodes = std::move(next);
    }
  return {nodes[0].value, nodes[0].error + nodes[0].mass, nodes[0].excluded};
}
inline expected_result define(const rules::adasum_linear&, const quad_matrix& g) {
  node total{g[0], norm(g[0])};
  for (std::size_t i = 1; i < g.size(); ++i) total = merge(total, {g[i], norm(g[i])});
  return {total.value, total.error + total.mass, total.excluded};
}

// ── adacons ──

/// α is known to m = (1/n)Σ‖gⱼ‖, so their sum S to n·m, and the result Σ αᵢuᵢ/S to n·m/S·(1 + Σ|α|/S) of unit vectors.
inline expected_result define(const rules::adacons& rule, const quad_matrix& g) {
  const auto n = static_cast<quad>(g.size());
  const auto lengths = lengths_of(g);
  const quads mean = combination(g, equal_weights(g.size()));
  const quad mean_norm = sum(lengths) / n, least = rule.epsilon * mean_norm;
  if (mean_norm == 0) return from_weights(g, equal_weights(g.size()));
  quads alpha;
  quad absolute = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    alpha.push_back(dot(g[i], mean) / (lengths[i] + least));
    absolute += fabsq(alpha.back());
  }
  const quad total = sum(alpha), margin = total - rule.guard * absolute;
  const bool near = fabsq(margin) <= 1e-8_q * n * mean_norm;
  if (margin <= 0) return from_weights(g, equal_weights(g.size()), 0, near);
  const quad s = rule.scale == rules::adacons::scaling::mean_norm ? mean_norm : 1;
  quads weights;
  for (std::size_t i = 0; i < g.size(); ++i) weights.push_back(s * alpha[i] / total / (lengths[i] + least));
  return from_weights(g, weights, s * n * mean_norm / total * (1 + absolute / total), near);
}

// ── rules that compare ──

/// Whether two of them are as good as equal but not the same gradient. (What is exactly 0 is 0 in the library, too.)
inline bool near_tie(quad a, quad b, const quads& x, const quads& y) {
  return (a != 0 || b != 0) && fabsq(a - b) <= 1e-6_q * std::max(fabsq(a), fabsq(b)) && x != y;
}

inline expected_result define(const rules::multi_krum& rule, const quad_matrix& g) {
  const auto n = g.size(), m = std::min(rule.selected, n);
  const std::size_t counted = n < 2 ? 0 : n > rule.byzantine + 2 ? std::max<std::size_t>(1, n - rule.byzantine - 2) : 1;
  quads scores;
  for (std::size_t i = 0; i < n; ++i) {
    quads squares;
    for (std::size_t j = 0; j < n; ++j)
      if (j != i) squares.push_back(distance(g[i], g[j]) * distance(g[i], g[j]));
    std::ranges::sort(squares);
    scores.push_back(sum(quads(squares.begin(), squares.begin() + static_cast<std::ptrdiff_t>(counted))));
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) { return scores[i] < scores[j]; });
  quads weights(n);
  bool near = false;
  for (std::size_t k = 0; k < m; ++k) {
    weights[order[k]] = 1 / static_cast<quad>(m);
    for (std::size_t rest = m; rest < n; ++rest)
      near = near || near_tie(scores[order[k]], scores[order[rest]], g[order[k]], g[order[rest]]);
  }
  return from_weights(g, weights, 0, near);
}

/// Each gradient's n - f nearest, averaged.
inline quad_matrix mixed(const quad_matrix& g, std::size_t byzantine, bool& near) {
  const auto n = g.size(), kept = n - std::min(byzantine, n - 1);
  quad_matrix result;
  for (std::size_t i = 0; i < n; ++i) {
    quads far(n);
    for (std::size_t j = 0; j < n; ++j) far[j] = j == i ? -1 : distance(g[i], g[j]);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return far[a] < far[b]; });
    quads mean(g[i].size());
    const auto first_left_out = kept < n ? order[kept] : 0;
    if (kept < n)
      near = near || near_tie(far[order[kept - 1]], far[first_left_out], g[order[kept - 1]], g[first_left_out]);
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));  // the same set, the same mean
    for (std::size_t k = 0; k < kept; ++k) add(mean, 1 / static_cast<quad>(kept), g[order[k]]);
    result.push_back(mean);
  }
  return result;
}

/// With cosines to M/‖z‖·(1 + M/‖z‖).
inline expected_result define(const rules::gradient_agreement_filtering& rule, const quad_matrix& g) {
  const auto n = g.size();
  quads weights(n);
  std::size_t taken = 0, nonzero = 0;
  bool near = false;
  for (std::size_t i = 0; i < n; ++i) {
    if (norm(g[i]) == 0) continue;
    ++nonzero;
    if (taken > 0) {
      const auto z = combination(g, weights);
      const quad length = norm(z), cancelled = length > 0 ? mass(g, weights) / length : 1e30_q;
      const quad margin = rule.threshold - 1 + (length > 0 ? dot(z, g[i]) / length / norm(g[i]) : 0);
      near = near || cancelled > 1e6_q || fabsq(margin) <= 1e-14_q * static_cast<quad>(n) * cancelled * (1 + cancelled);
      if (margin < 0) continue;
    }
    ++taken;
    weights = times(weights, 1 - 1 / static_cast<quad>(taken));
    weights[i] += 1 / static_cast<quad>(taken);
  }
  if (taken == 1 && nonzero > 1) weights.assign(n, 0);
  return from_weights(g, weights, 0, near);
}

// ── rules that go step by step ──

/// A projection adds no more than a rounding of what is projected, n·M(z), to its error.
inline expected_result define(const rules::pcgrad& rule, const quad_matrix& g) {
  const auto n = g.size();
  const auto gram = gram_of(g);
  const auto lengths = lengths_of(g);
  rules::shared_order order(rule.seed, 0, 0);
  quads total(n);
  quad error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    spanned z(gram, lengths, quads(n));
    z.add(1, i);
    for (const auto j : order(n))
      if (j != i && z.products[j] < 0) {
        z.add(-z.products[j] / gram[j][j], j);
        error += static_cast<quad>(n) * z.mass();
      }
    add(total, 1, z.z);
  }
  return from_weights(g, total, error);
}

/// A pair turns z = p + a gⱼ/‖gⱼ‖, p ⊥ gⱼ, to p + ‖p‖ cot(θ) gⱼ/‖gⱼ‖, cos θ = φ̂, if a is less than that. So what z is wrong by
/// grows to at most 1/sin θ as much. Added are roundings n·M(z) of z and a, and those of ‖p‖² = ‖z‖² - a², n·M(z)², which is
/// n·M(z)²/‖p‖ of ‖p‖, but never more than the root of it. Where z has all but vanished, it may be turned or passed over.
/// @param before, after  the rule, with its usual cosines before and after the call
inline expected_result define(const rules::gradvac& before, const quad_matrix& g, const rules::gradvac& after) {
  const auto n = g.size();
  const auto gram = gram_of(g);
  const auto lengths = lengths_of(g);
  rules::shared_order order(before.seed, before.calls.empty() ? 0 : before.calls[0], 0);
  constexpr quad unit = 16 * epsilon;
  quads total(n);
  quad error = 0, worst_target = 0;
  for (std::size_t i = 0; i < n; ++i) {
    spanned z(gram, lengths, quads(n));
    z.add(1, i);
    quad own_error = 0;  // of z, in units
    for (const auto j : order(n)) {
      if (j == i || lengths[j] == 0) continue;
      const quad usual = before.targets.empty() ? before.target : before.targets[0][i * n + j];
      const quad sine = sqrtq(1 - usual * usual), length = z.length(),
                 squares = static_cast<quad>(n) * z.mass() * z.mass();
      const quad vanished = sqrtq(unit * squares);
      const bool vanishing = length < 4 * vanished + 2 * unit * own_error;
      const quad along = z.products[j] / lengths[j];
      const quad across = length > fabsq(along) ? sqrtq((length - along) * (length + along)) : 0;
      const quad cosine = length > 0 ? along / length : 0;
      const bool turns = length > vanished && cosine < usual;
      const quad unsure = own_error + squares / std::max(length, vanished);
      if (turns) z.add((across * usual / sine - along) / lengths[j], j);
      if (turns || vanishing || length * (cosine - usual) <= 2 * unit * unsure) {
        const quad added = across > 0 ? std::min(squares / across, sqrtq(squares / unit)) : sqrtq(squares / unit);
        own_error = own_error / sine + static_cast<quad>(n) * z.mass() + fabsq(usual) / sine * added;
        if (vanishing) own_error += 2 / sine * length / unit;
      }
      if (vanishing) continue;
      const quad expected = (1 - before.beta) * usual + before.beta * cosine;
      // Two vectors of floats are measured in float lanes.
      const quad bound = (n > 2 ? unit : 0x1p-18_q) * (before.beta * 4 * unsure / length + 1);
      worst_target = std::max(worst_target, fabsq(after.targets[0][i * n + j] - expected) / bound);
    }
    add(total, 1, z.z);
    error += own_error;
  }
  CHECK(static_cast<double>(worst_target) <= 1);
  return from_weights(g, total, error);
}

/// The square of a distance r from z is known to n·M², M = M(z) + ‖gᵢ‖, so the distance to δ = n·M²/r² of itself.
struct known_distance {
  known_distance(const spanned& z, std::size_t i, const quads& lengths)
      : length(z.distance(i)), terms(z.mass() + lengths[i]), n(static_cast<quad>(lengths.size())) {}
  quad delta(quad at_least) const { return n * terms * terms / (at_least * at_least); }
  quad length, terms, n;
};
inline quad median_of(quads lengths) {
  std::ranges::sort(lengths);
  return lengths[(lengths.size() - 1) / 2];
}
/// Where δ is more than this, the first order says nothing.
inline constexpr quad unknown = 0.5_q / (16 * epsilon);

/// An iteration moves by the shares of gradients that are not known, times how far they are; and Weiszfeld's iteration brings
/// what differs nearer together.
inline expected_result define(const rules::geometric_median& rule, const quad_matrix& g) {
  const auto n = g.size();
  const auto gram = gram_of(g);
  const auto lengths = lengths_of(g);
  const quad median = median_of(lengths), least = rule.smoothing * median;
  quads z(n);
  quad error = 0;
  bool near = false;
  if (median == 0) {
    quad zeros = 0;
    for (const auto& v : g) zeros += norm(v) == 0;
    for (std::size_t i = 0; i < n; ++i) z[i] = norm(g[i]) == 0 ? 1 / zeros : 0;
    return from_weights(g, z);
  }
  for (std::size_t round = 0; round < rule.iterations; ++round) {
    quads beta, delta;
    const spanned before(gram, lengths, z);
    for (std::size_t i = 0; i < n; ++i) {
      const known_distance r(before, i, lengths);
      beta.push_back(1 / std::max(least, r.length));
      delta.push_back(r.delta(std::max(least, r.length)));
      near = near || delta.back() > unknown;
    }
    const quads next = times(beta, 1 / sum(beta));
    const spanned after(gram, lengths, next);
    for (std::size_t i = 0; i < n; ++i) error += next[i] * delta[i] * after.distance(i);
    const quad move = spanned(gram, lengths, add(z, -1, next)).length() / (1e-9_q * median);
    z = next;
    if (round == 0) continue;
    near = near || fabsq(move - 1) < 1e-2_q;
    if (move <= 1) break;
  }
  return from_weights(g, z, error, near);
}

/// Clipping brings nearer together what differs; what is clipped is τ long, to δ.
inline expected_result define(const rules::centred_clipping& rule, const quad_matrix& g) {
  const auto n = g.size();
  const auto gram = gram_of(g);
  const auto lengths = lengths_of(g);
  const quad limit = rule.radius * median_of(lengths);
  quads z(n);
  quad error = 0;
  bool near = false;
  for (std::size_t round = 0; round < rule.iterations; ++round) {
    quads step(n);
    const spanned before(gram, lengths, z);
    for (std::size_t i = 0; i < n; ++i) {
      const known_distance r(before, i, lengths);
      step[i] = (r.length > limit ? limit / r.length : 1) / static_cast<quad>(n);
      if (r.length > 0 && limit > 0) {
        const quad delta = r.delta(std::max(limit, r.length));
        near = near || delta > unknown;
        error += delta * step[i] * r.length;
      }
    }
    z = times(z, 1 - sum(step));
    add(z, 1, step);
    error += mass(g, z);
  }
  return from_weights(g, z, error, near);
}

}  // namespace adasum::test::reference
