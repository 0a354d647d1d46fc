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

/// Each gradient without its parts along gradients that it is opposed to (gradient surgery):
///
///     for each i:  z = gᵢ;  for each j ≠ i, in a random order:  if z·gⱼ < 0:  z ← z - (z·gⱼ)/(gⱼ·gⱼ) gⱼ
///     result = Σ of all z
///
/// Source: Yu et al., "Gradient Surgery for Multi-Task Learning", NeurIPS 2020, algorithm 1. Where no two gradients are
/// opposed, it is their sum, or, with `average`, their mean. The order is the same on all ranks (shared_order), and another
/// one in every call. From three gradients on, z may be opposed again to a gradient that came early in the order, so that
/// the result may harm some; upgrad and dualproj harm none.
///
/// A zero gradient changes nothing, and has weight 1. Opposed gradients (g and -g) cancel. The error of the result, relative
/// to Σ|cᵢ|‖gᵢ‖, is a few roundings; weights are continuous in G for a given order. O(n³).
struct pcgrad {
  static constexpr std::string_view name = "pcgrad";

  std::uint64_t seed = 0;    ///< of the order
  bool average = false;      ///< the mean of all z in place of their sum
  bool per_segment = false;  ///< weights for each segment by itself, instead of one set for the whole model

  /// State: how often it has been called for each segment (one for the whole model). Save and restore it with the
  /// optimizer's to get the same orders.
  std::vector<std::uint64_t> calls{};

  bool whole_model() const { return !per_segment; }
  auto parameters() const {  // the seed in halves, since double holds no 64 bits
    return parameter_list(seed >> 32, seed & 0xffffffffu, average, per_segment);
  }

  void operator()(gram_view g, std::span<double> weights, std::size_t segment);
};

}  // namespace adasum::rules

#if ADASUM_DEFINITIONS
#include <algorithm>

#include "orders.hpp"
#include "span_vector.hpp"

namespace adasum::rules {

ADASUM_INLINE void pcgrad::operator()(gram_view g, std::span<double> weights, std::size_t segment) {
  const auto n = g.size();
  shared_order order(seed, count_call(calls, segment), segment);
  std::fill(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    span_vector z(g);
    z.add(1, i);
    for (const auto j : order(n))
      if (j != i && z.dot(j) < 0) z.add(-z.dot(j) / g(j, j), j);
    for (std::size_t k = 0; k < n; ++k) weights[k] += z.coefficients()[k] / (average ? static_cast<double>(n) : 1);
  }
}

}  // namespace adasum::rules
#endif
