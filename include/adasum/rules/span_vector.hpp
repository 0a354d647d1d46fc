// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "../core/gram.hpp"

namespace adasum::rules {

/// By how much an entry of a Gram matrix may be wrong, relative to the lengths of its two vectors: a few roundings of
/// double, of the products and of their sums.
inline constexpr double gram_accuracy = 0x1p-48;

/// A vector z = Σ cᵢ gᵢ in the span of gradients, by its coefficients and its inner products with the gradients. The Gram
/// matrix is not copied.
class span_vector {
 public:
  /// The vector 0.
  explicit span_vector(gram_view gram) : gram_(gram), coefficients_(gram.size(), 0.0), products_(gram.size(), 0.0) {}

  /// Adds a multiple of gradient j. O(n).
  void add(double factor, std::size_t j) {
    coefficients_[j] += factor;
    for (std::size_t i = 0; i < products_.size(); ++i) products_[i] += factor * gram_(i, j);
  }
  /// Multiplies the vector. O(n).
  void multiply(double factor) {
    for (double& coefficient : coefficients_) coefficient *= factor;
    for (double& product : products_) product *= factor;
  }

  /// cᵢ of each gradient.
  const std::vector<double>& coefficients() const { return coefficients_; }

  /// z·gⱼ.
  double dot(std::size_t j) const { return products_[j]; }

  /// ‖z‖, and 0 where nothing is left of it but rounding: no more than √(n·gram_accuracy) of Σ|cᵢ|‖gᵢ‖. O(n).
  double length() const { return root_of(square(), mass()); }

  /// ‖gⱼ - z‖, likewise compared with ‖gⱼ‖ + Σ|cᵢ|‖gᵢ‖. O(n).
  double distance(std::size_t j) const {
    return root_of(gram_(j, j) - 2 * products_[j] + square(), mass() + std::sqrt(gram_(j, j)));
  }

 private:
  double square() const {
    return std::inner_product(coefficients_.begin(), coefficients_.end(), products_.begin(), 0.0);
  }
  double mass() const {
    double sum = 0;
    for (std::size_t i = 0; i < coefficients_.size(); ++i) sum += std::abs(coefficients_[i]) * std::sqrt(gram_(i, i));
    return sum;
  }
  double root_of(double square, double mass) const {
    return square > static_cast<double>(coefficients_.size()) * gram_accuracy * mass * mass ? std::sqrt(square) : 0;
  }

  gram_view gram_;
  std::vector<double> coefficients_, products_;
};

/// The middle one of the gradients' lengths; of an even number, the lower of the two. Less than half of the ranks
/// cannot move it out of the range of the others' lengths.
inline double median_length(gram_view gram) {
  std::vector<double> squares(gram.size());
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = gram(i, i);
  const auto middle = squares.begin() + static_cast<std::ptrdiff_t>((squares.size() - 1) / 2);
  std::nth_element(squares.begin(), middle, squares.end());
  return std::sqrt(*middle);
}

}  // namespace adasum::rules
