// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>

#include "gram.hpp"
#include "scalar.hpp"

/// How far the weights that come from inner products can be trusted.
namespace adasum::detail {

/// How far the weights of a segment can be trusted.
enum class weighing {
  good,           ///< use them
  nonfinite,      ///< an input holds Inf or NaN; all weights are NaN
  needs_vectors,  ///< inner products say too little (cancellation, distances, or squares outside double's range), or
                  ///< terms may be too large for floats: combine the vectors themselves, see recombine
};

/// Squares between these bounds keep full precision in every inner product of two such vectors.
inline constexpr double smallest_safe_square = 0x1p-800;
inline constexpr double largest_safe_square = 0x1p+800;

/// Up to this square, no term of a combination is too large for kernels that multiply in floats, unless the result is:
/// of two vectors, the longer one's weight is at most 1.5, so that the other term is at most 2.5 times the largest float
/// where they cancel. Up to the same square, norms of doubles are safe as above. (binary16 ends far below.)
constexpr double largest_mixed_square(number_format format) {
  return format == number_format::binary64 ? largest_safe_square : 0x1p+252;
}

/// What must hold for weights to be used.
///
/// Below a fraction of Σ cᵢ² Gᵢᵢ, a node's squared norm says too little about it: its leading digits have cancelled,
/// and what is left are the roundings of inner products, weights and elements. The vectors themselves say more.
struct weighing_limits {
  double node;            ///< that fraction for nodes that are weighed, and combined further
  double root;            ///< that for the result
  double largest_square;  ///< see largest_mixed_square
};

/// Below this fraction, all that a Gram matrix of doubles knows of a node is that it may be zero.
inline constexpr double vanishing_threshold = 0x1p-48;

/// The limits for n vectors of a format that are combined in one go.
/// @param exact_vectors  whether the vectors are combined in double, and not as they are with a rounding at every node, where
///                       inner products do not suffice. If not in double, they are combined only where nothing else is
///                       left
constexpr weighing_limits limits_for(number_format format, std::size_t n, bool exact_vectors) {
  const double largest = largest_mixed_square(format);
  if (!exact_vectors) return {vanishing_threshold, vanishing_threshold, largest};
  // The Gram matrix has a relative error near 2⁻⁵²: 2⁻²⁴ leaves eight digits for the weights.
  constexpr double node = 0x1p-24;
  if (n > 2 || format == number_format::binary64) return {node, vanishing_threshold, largest};
  // Two vectors may be measured and mixed in float lanes, to 2⁻²⁴ of what is added. That may show as much as a few
  // roundings of the result do.
  const double share = 0x1p-24 / (8 * unit_roundoff(format));
  return {node, share * share > vanishing_threshold ? share * share : vanishing_threshold, largest};
}

/// What the squares alone say, before any rule is asked.
ADASUM_HOST_DEVICE constexpr weighing weighing_of_squares(gram_view gram, double largest = largest_safe_square) {
  auto quality = weighing::good;
  for (std::size_t i = 0; i < gram.size(); ++i) {
    const double square = gram(i, i);
    // Out of range also beside a NaN: only the vectors tell an infinite norm from one whose square overflows.
    if (is_nan(square))
      quality = weighing::nonfinite;
    else if (square != 0 && (square < smallest_safe_square || square > largest))
      return weighing::needs_vectors;
  }
  return quality;
}

/// Whether the sum of two vectors is so short beside them that the limit for the result is not kept.
ADASUM_HOST_DEVICE constexpr bool cancels(const pair_gram& g, const pair_weights& w, const weighing_limits& limits) {
  const double left = w.a * g.aa * w.a, right = w.b * g.bb * w.b;
  return left + 2 * (w.a * g.ab * w.b) + right < limits.root * (left + right);
}

}  // namespace adasum::detail
