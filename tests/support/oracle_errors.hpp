// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "oracle.hpp"

/// How far a correct computation may be from the oracle, to first order in the unit roundoffs. Three sources:
///
/// 1. Inner products: |error of a·b| <= η‖a‖‖b‖, where η is the bound that exec/serial/measure.hpp documents.
/// 2. Weights. Let node v = wₐ·a + w_b·b, wₐ = 1 − d/2A, and let the computed children be off by vectors of norm Eₐ,
///    E_b. From a Gram matrix, d comes with an error of ηmₐm_b and A with ηmₐ², m being Σ|cᵢ|‖gᵢ‖ over a child's leaves
///    (pair by pair, m is simply the child's norm). So
///        |Δd| <= η mₐ m_b + Eₐ‖b‖ + E_b‖a‖,    |ΔA| <= η mₐ² + 2Eₐ‖a‖,
///        |Δwₐ|·‖a‖ <= (|Δd|/A + |d||ΔA|/A²)/2 · ‖a‖ <= |Δd|/2‖a‖ + ‖b‖|ΔA|/2A,
///    and never more than ‖b‖, as (d/2A)a is at most ‖b‖/2 long, exact or not. The roundings of double in a weight and
///    in products of weights add at most 2u(‖a‖ + ‖b‖) + 4u·m.
///    Then E_v <= |wₐ|Eₐ + |w_b|E_b + |Δwₐ|‖a‖ + |Δw_b|‖b‖.
/// 3. Mixing: see mix_error. Once at the end from a Gram matrix; at every node pair by pair.
namespace adasum::test {

inline constexpr real unit_of_double = 0x1p-53L, unit_of_float = 0x1p-24L;

/// η for `vectors` vectors of `length` elements, whatever the instruction set; sums over ranks included.
/// 65 = chain_length + 1 of the float lanes, which are emptied into doubles; double lanes are at least two.
template <scalar T>
real inner_product_error(std::size_t vectors, std::size_t length) {
  const auto count = static_cast<real>(length);
  const bool float_lanes = format_of<T> != number_format::binary64 && vectors <= 2;
  return float_lanes ? 65 * unit_of_float + (count / 64 + 128) * unit_of_double : (count / 2 + 64) * unit_of_double;
}

/// Bounds the rounding of Σ wᵢ vᵢ, element by element or in the 2-norm: `mass` is Σ|wᵢ||vᵢ|, `result` |Σ wᵢ vᵢ|.
/// Two vectors of at most 32 bits are added in float lanes: two products and two sums, of which no term meets more than
/// three; one for terms of order u². Otherwise double lanes: a product and a sum for each vector, then one rounding to
/// float. A 16-bit result is rounded once more.
template <scalar T>
real mix_error(std::size_t vectors, real mass, real result, real elements = 1) {
  if (mass == 0) return 0;
  const auto n = static_cast<real>(vectors);
  const auto to_result = rounding_to<T>;
  const real tiny = 2 * std::sqrt(elements) * to_result.tiny;
  if (format_of<T> == number_format::binary64) return (n + 1) * unit_of_double * mass + tiny;
  const real in_lanes =
      vectors <= 2 ? 3.01L * unit_of_float * mass : (n + 1) * unit_of_double * mass + unit_of_float * result;
  return in_lanes + (is_16_bit<T> ? to_result.unit * (result + in_lanes) : 0) + tiny;
}

/// The error bound of one merge's weights, as vectors (2. above).
struct child_error {
  real norm, mass, error;  // ‖a‖, mₐ, Eₐ
};

inline real weight_error(const child_error& a, const child_error& b, real eta) {
  if (b.norm == 0 && b.error == 0) return 0;
  if (a.norm == 0) return a.error == 0 ? 0 : b.norm;
  const real dot_error = eta * a.mass * b.mass + a.error * b.norm + b.error * a.norm;
  const real square_error = eta * a.mass * a.mass + 2 * a.error * a.norm;
  return std::min(dot_error / (2 * a.norm) + b.norm * square_error / (2 * a.norm * a.norm), b.norm + b.error);
}

template <class Rule>
real merged_error(const child_error& a, const child_error& b, real wa, real wb, real eta) {
  const real weights = std::is_same_v<Rule, rules::adasum> ? weight_error(a, b, eta) + weight_error(b, a, eta) : 0;
  return std::abs(wa) * a.error + std::abs(wb) * b.error + weights +
         unit_of_double * (2 * (a.norm + b.norm) + 4 * (std::abs(wa) * a.mass + std::abs(wb) * b.mass));
}

/// The exact combination, and for every segment bounds of ‖computed − exact‖₂.
struct bounded_oracle {
  real_vector values;
  std::vector<real> gram_error;      ///< all weights from one Gram matrix (report().recombined_segments() == 0)
  std::vector<real> pairwise_error;  ///< pair by pair along the tree, each result stored as T

  /// Holds whichever way a segment went.
  std::vector<real> either() const {
    std::vector<real> larger;
    for (std::size_t k = 0; k < gram_error.size(); ++k) larger.push_back(std::max(gram_error[k], pairwise_error[k]));
    return larger;
  }
};

/// tree(leaves, merge): the one over all ranks.
struct tree_of_all {
  template <class Merge>
  oracle_node operator()(std::vector<oracle_node> leaves, const Merge& merge) const {
    return oracle_tree(std::move(leaves), merge);
  }
};

template <scalar T, class Rule, gradient_list Gradients, class Tree = tree_of_all>
bounded_oracle oracle_with_errors(Rule rule, const Gradients& gradients, segments_view segments,
                                  const Tree& tree = {}) {
  bounded_oracle oracle;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    auto leaves = oracle_leaves(gradients, segments.range(k));
    const auto n = leaves.size(), length = segments.range(k).size();
    const auto elements = static_cast<real>(length);
    // A quadratic form has up to n²/4 terms, each with three roundings.
    const real eta = inner_product_error<T>(n, length) + static_cast<real>(n * n + 8) * unit_of_double;
    const real pair_eta = inner_product_error<T>(2, length);
    const auto root = tree(std::move(leaves), [&](const oracle_node& a, const oracle_node& b) {
      auto merged = oracle_merge(rule, a, b);
      const auto [wa, wb] = oracle_weights(rule, a.value, b.value, a.leaves, b.leaves);
      const real na = norm(a.value), nb = norm(b.value);
      merged.gram_error = merged_error<Rule>({na, a.mass, a.gram_error}, {nb, b.mass, b.gram_error}, wa, wb, eta);
      merged.pairwise_error =
          merged_error<Rule>({na, na, a.pairwise_error}, {nb, nb, b.pairwise_error}, wa, wb, pair_eta) +
          mix_error<T>(2, std::abs(wa) * na + std::abs(wb) * nb, norm(merged.value), elements);
      return merged;
    });
    oracle.gram_error.push_back(root.gram_error + mix_error<T>(n, root.mass, norm(root.value), elements));
    oracle.pairwise_error.push_back(root.pairwise_error);
    oracle.values.insert(oracle.values.end(), root.value.begin(), root.value.end());
  }
  return oracle;
}

/// The largest ‖computed − exact‖₂ / bound over the segments: at most 1 for a correct result, infinite where a bound of
/// 0 is missed or something is not a number.
template <gradient Computed>
double worst_error_over_bound(const Computed& computed, const real_vector& exact, const std::vector<real>& bounds,
                              segments_view segments) {
  real worst = computed.size() == exact.size() ? 0 : std::numeric_limits<real>::infinity();
  for (std::size_t k = 0; k < segments.size() && std::isfinite(worst); ++k) {
    real_vector difference;
    for (std::size_t x = segments.range(k).begin; x < segments.range(k).end; ++x)
      difference.push_back(static_cast<real>(to_double(computed[x])) - exact[x]);
    const real error = norm(difference);
    if (error == 0) continue;
    worst = error <= std::numeric_limits<real>::max() && bounds[k] > 0 ? std::max(worst, error / bounds[k])
                                                                       : std::numeric_limits<real>::infinity();
  }
  return static_cast<double>(worst);
}

}  // namespace adasum::test
