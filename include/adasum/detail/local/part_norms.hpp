// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "../../core/float_bits.hpp"
#include "../../core/gram.hpp"
#include "../../core/weigh.hpp"

namespace adasum::detail {

/// ‖Σ wᵢ 2^eᵢ gᵢ‖ from inner products, also where its square or that of a weight leaves the range of double.
/// @param exponent  exponent(i): eᵢ
template <class Exponent>
double norm_of_combination(gram_view gram, std::span<const double> weights, const Exponent& exponent) {
  int largest = std::numeric_limits<int>::min();  // of a term, as an exponent of two
  for (std::size_t i = 0; i < gram.size(); ++i) {
    if (is_zero(weights[i]) || is_zero(gram(i, i))) continue;
    if (is_nan(weights[i])) return weights[i];
    if (!is_finite(gram(i, i))) return gram(i, i);
    largest = std::max(largest, std::ilogb(weights[i]) + exponent(i) + std::ilogb(std::sqrt(gram(i, i))));
  }
  if (largest == std::numeric_limits<int>::min()) return 0;
  const auto weight = [&](std::size_t i) { return std::ldexp(weights[i], exponent(i) - largest); };
  double sum = 0;
  for (std::size_t i = 0; i < gram.size(); ++i)
    for (std::size_t j = 0; j < gram.size(); ++j)
      if (!is_zero(weights[i]) && !is_zero(weights[j])) sum += weight(i) * gram(i, j) * weight(j);
  return std::ldexp(std::sqrt(std::max(0.0, sum)), largest);
}

/// Norms by segment, for the report, where all segments are recombined as one: under a rule for the whole model. They come
/// from Gram matrices of vectors times powers of two, whose squares are in double's range. A segment that is far shorter
/// than others may be lost there: then the vectors' own Gram matrix tells.
class part_norms {
 public:
  /// @param parts     the segments; none if they are not recombined as one
  /// @param together  how many vectors are combined at once
  part_norms(std::size_t parts, std::size_t together, std::size_t vectors)
      : vectors_(vectors),
        gram_(parts * packed_size(together)),
        norms_(parts * vectors, unknown),
        result_norms_(parts, unknown) {}

  /// The packed matrices of all parts, one after the other. @param total  receives their sum
  void read(std::span<const double> matrices, std::span<double> total) {
    std::ranges::copy(matrices, gram_.begin());
    std::ranges::fill(total, 0.0);
    for (std::size_t e = 0; e < matrices.size(); ++e) total[e % total.size()] += matrices[e];
  }

  /// Vector i of the `count` whose matrices have been read is gradient `leaf` times 2^exponent.
  void note_norms(std::size_t i, std::size_t count, std::size_t leaf, int exponent) {
    for (std::size_t k = 0; k < size(); ++k)
      if (const double square = matrix(k, count)(i, i); is_accurate(square))
        norms_[k * vectors_ + leaf] = std::ldexp(std::sqrt(square), -exponent);
  }
  /// The result is Σ weights[i] 2^exponent(i) vᵢ of the vectors whose matrices have been read.
  template <class Exponent>
  void note_result(std::span<const double> weights, const Exponent& exponent) {
    for (std::size_t k = 0; k < size(); ++k)
      result_norms_[k] = norm_of_combination(matrix(k, weights.size()), weights, exponent);
  }

  void forget_result() { std::ranges::fill(result_norms_, unknown); }
  /// The one vector whose squares have been read is the result.
  void note_root() {
    for (std::size_t k = 0; k < size(); ++k)
      if (is_accurate(gram_[k])) result_norms_[k] = std::sqrt(gram_[k]);
  }
  void clear_result() { std::ranges::fill(result_norms_, 0.0); }

  /// What is known of part k, in place of what the vectors' own matrix says where that is out of range.
  /// @param weights  of the vectors themselves
  void correct(std::size_t k, gram_view gram, std::span<const double> weights, std::span<double> norms,
               double& result_norm) const {
    bool corrects = false;
    for (std::size_t i = 0; i < vectors_; ++i) {
      const double known = norms_[k * vectors_ + i];
      if (is_accurate(gram(i, i)) || is_nan(known)) continue;
      norms[i] = known;
      corrects = !is_nan(result_norms_[k]);
    }
    result_norm = corrects ? result_norms_[k] : norm_of_combination(gram, weights, [](std::size_t) { return 0; });
  }

 private:
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  static bool is_accurate(double square) {
    return is_finite(square) && square >= smallest_safe_square && square <= largest_safe_square;
  }

  std::size_t size() const { return result_norms_.size(); }
  gram_view matrix(std::size_t k, std::size_t count) const { return {gram_.data() + k * packed_size(count), count}; }

  std::size_t vectors_;
  std::vector<double> gram_;          // of each part
  std::vector<double> norms_;         // by part and gradient; NaN where it is not known
  std::vector<double> result_norms_;  // by part; likewise
};

}  // namespace adasum::detail
