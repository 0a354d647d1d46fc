// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/float_bits.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/row_sums.hpp"
#include "../../core/weigh.hpp"

namespace adasum::detail {

/// √Σ xᵢ² of numbers that are not negative; out of range only if it is no double.
inline double norm_of_norms(std::span<const double> norms) {
  double largest = 0, sum = 0;
  for (const double norm : norms) {
    if (!is_finite(norm)) return norm;
    largest = std::max(largest, norm);
  }
  if (largest == 0) return 0;
  for (const double norm : norms) sum += (norm / largest) * (norm / largest);
  return largest * std::sqrt(sum);
}

/// The weights of some gradients under a row_sum_rule, from their norms ‖gᵢ‖ and projections gᵢ·ḡ / ‖gᵢ‖ on their mean ḡ.
/// These are in double's range whenever the norms are, which need not hold for squares and gᵢ·ḡ. Where squares of norms
/// leave the range in which rules are asked (core/weigh.hpp), the rule is asked about the gradients times a power of two
/// that brings the middle between the largest norm and the smallest near 1. Pure: the same on all ranks.
template <row_sum_rule Rule>
class row_sum_weights {
 public:
  /// @param n  the most gradients
  explicit row_sum_weights(std::size_t n) : norms_(n), projections_(n), weights_(n) {}

  void clear() { count_ = 0; }
  void add(double norm, double projection) {
    norms_[count_] = norm;
    projections_[count_++] = projection;
  }

  /// Those of the gradients that were added, in that order; NaN if any of them is not finite.
  /// @param segment  its number, for rules that keep state
  std::span<const double> weigh(Rule& rule, std::size_t segment) {
    const auto norms = std::span(norms_).first(count_), row_sums = std::span(projections_).first(count_);
    const auto weights = std::span(weights_).first(count_);
    if (count_ == 0) return weights;
    if (!std::ranges::all_of(norms, [](double norm) { return is_finite(norm); })) {
      std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());
      return weights;
    }
    const int scale = common_scale(norms);
    for (std::size_t i = 0; i < count_; ++i) {
      norms[i] = std::ldexp(norms[i], scale);
      row_sums[i] = norms[i] * std::ldexp(row_sums[i], scale) * static_cast<double>(count_);
    }
    const auto fallbacks = fallbacks_of(rule);
    const row_sums_view known(norms, row_sums);
    if constexpr (requires { rule(known, weights, segment); })
      rule(known, weights, segment);
    else
      rule(known, weights);
    const int degree = fallbacks_of(rule) == fallbacks ? degree_of(rule) : 1;  // the mean's
    if (scale != 0)
      for (double& weight : weights) weight = std::ldexp(weight, scale * (1 - degree));
    return weights;
  }

 private:
  /// The exponent of the power of two; 0 where none is needed.
  static int common_scale(std::span<const double> norms) {
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (const double norm : norms)
      if (norm > 0) largest = std::max(largest, norm), smallest = std::min(smallest, norm);
    if (largest == 0) return 0;
    if (largest * largest <= largest_safe_square && smallest * smallest >= smallest_safe_square) return 0;
    constexpr int most = 500;  // above the largest: a sum of a million squares is in range
    return -std::ilogb(largest) + std::min((std::ilogb(largest) - std::ilogb(smallest)) / 2, most);
  }

  std::vector<double> norms_, projections_, weights_;
  std::size_t count_ = 0;
};

}  // namespace adasum::detail
