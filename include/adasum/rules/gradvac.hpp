// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "../core/gram.hpp"

namespace adasum::rules {

/// Each gradient turned towards those with which it agrees less than it used to (gradient vaccine):
///
///     for each i:  z = gᵢ;  for each j ≠ i, in a random order:
///         φ = cos(z, gⱼ)
///         if φ < φ̂ᵢⱼ:  z ← z + ‖z‖ (φ̂ᵢⱼ √(1-φ²) - φ √(1-φ̂ᵢⱼ²)) / (‖gⱼ‖ √(1-φ̂ᵢⱼ²)) gⱼ, which makes cos(z, gⱼ) = φ̂ᵢⱼ
///         φ̂ᵢⱼ ← (1-β) φ̂ᵢⱼ + β φ
///     result = Σ of all z
///
/// Source: Wang et al., "Gradient Vaccine: Investigating and Improving Multi-task Optimization in Massively Multilingual
/// Models", ICLR 2021, section 3.2 and algorithm 1, which begins with φ̂ = 0. With β = 0 and `target` = 0 it is pcgrad.
/// The order is the same on all ranks (shared_order), and another one in every call.
///
/// Pairs with a zero gradient are passed over, and those where z has vanished (span_vector::length); a zero gradient has
/// weight 1. √(1-φ̂²) is taken to be at least `epsilon`, where gradients have always been parallel. (TorchJD adds its
/// epsilon to products of norms as well, so that short gradients count less.) The error of the result, relative to
/// Σ|cᵢ|‖gᵢ‖, is a few roundings where all φ̂ are 0; otherwise each pair multiplies the error so far by at most
/// 1/√(1-φ̂²), and adds a few roundings times φ̂/√(1-φ̂²), divided by the sine of the angle between z and gⱼ. O(n³).
struct gradvac {
  static constexpr std::string_view name = "gradvac";

  double beta = 0.01;        ///< β, in [0, 1]; 0.01 in the paper, 0.5 in TorchJD
  double target = 0;         ///< the first φ̂ of each pair; fixed for β = 0
  double epsilon = 1e-8;     ///< the least √(1-φ̂²)
  std::uint64_t seed = 0;    ///< of the order
  bool average = false;      ///< the mean of all z in place of their sum
  bool per_segment = false;  ///< weights and targets for each segment by itself, instead of one set for the whole model

  /// State, of each segment (one for the whole model): φ̂ᵢⱼ in entry i·n + j, and how often the rule has been called. Save
  /// and restore it with the optimizer's. The targets start anew when the number of gradients changes.
  std::vector<std::vector<double>> targets{};
  std::vector<std::uint64_t> calls{};  ///< state, too: how often the rule has been called

  bool whole_model() const { return !per_segment; }
  auto parameters() const {  // the seed in halves, since double holds no 64 bits
    return parameter_list(beta, target, epsilon, seed >> 32, seed & 0xffffffffu, average, per_segment);
  }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment);

 private:
  /// One pair: z and gradient j, of the given length.
  void turn(class span_vector& z, std::size_t j, double length, double& wanted) const;
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <cmath>

#include "orders.hpp"
#include "span_vector.hpp"

namespace adasum::rules {

ADASUM_INLINE void gradvac::operator()(gram_view g, std::span<double> weights, std::size_t segment) {
  const auto n = g.size();
  shared_order order(seed, count_call(calls, segment), segment);
  if (targets.size() <= segment) targets.resize(segment + 1);
  auto& wanted = targets[segment];
  if (wanted.size() != n * n) wanted.assign(n * n, target);
  std::fill(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    span_vector z(g);
    z.add(1, i);
    for (const auto j : order(n))
      if (j != i) turn(z, j, std::sqrt(g(j, j)), wanted[i * n + j]);
    for (std::size_t k = 0; k < n; ++k) weights[k] += z.coefficients()[k] / (average ? static_cast<double>(n) : 1);
  }
}

ADASUM_INLINE void gradvac::turn(span_vector& z, std::size_t j, double length, double& wanted) const {
  const double own = z.length();
  if (own == 0 || length == 0) return;
  const double cosine = std::clamp(z.dot(j) / own / length, -1.0, 1.0);
  if (cosine < wanted) {
    const double sine = std::max(epsilon, std::sqrt(std::max(0.0, 1 - wanted * wanted)));
    z.add(own / length * (wanted * std::sqrt(1 - cosine * cosine) - cosine * sine) / sine, j);
  }
  wanted = (1 - beta) * wanted + beta * cosine;
}

}  // namespace adasum::rules
#endif
