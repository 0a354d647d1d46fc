// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <array>
#include <cstddef>

namespace adasum {

/// How many entries a packed symmetric n×n matrix has.
ADASUM_HOST_DEVICE constexpr std::size_t packed_size(std::size_t n) { return n * (n + 1) / 2; }

/// Where entry (i, j) of a packed symmetric matrix lies: the lower triangle, row by row.
ADASUM_HOST_DEVICE constexpr std::size_t packed_index(std::size_t i, std::size_t j) {
  return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i;
}

/// The Gram matrix of n vectors, G(i, j) = gᵢ·gⱼ, packed (packed_size(n) doubles). Does not own them.
class gram_view {
 public:
  /// @param squared_distances  packed likewise, if they have been measured
  ADASUM_HOST_DEVICE constexpr gram_view(const double* packed, std::size_t n, const double* squared_distances = nullptr)
      : packed_(packed), squared_distances_(squared_distances), n_(n) {}

  /// How many vectors: n.
  ADASUM_HOST_DEVICE constexpr std::size_t size() const { return n_; }
  /// gᵢ·gⱼ
  ADASUM_HOST_DEVICE constexpr double operator()(std::size_t i, std::size_t j) const {
    return packed_[packed_index(i, j)];
  }
  /// The entries (i, 0) to (i, i), one behind the other.
  ADASUM_HOST_DEVICE constexpr const double* row(std::size_t i) const { return packed_ + packed_size(i); }

  /// ‖gᵢ - gⱼ‖². From inner products, Gᵢᵢ + Gⱼⱼ - 2Gᵢⱼ, it has an error of a few times 2⁻⁵³(‖gᵢ‖ + ‖gⱼ‖)², which may be
  /// all that is left of a short distance. A rule that needs inner_products::distances is then given distances that have
  /// been measured.
  ADASUM_HOST_DEVICE constexpr double squared_distance(std::size_t i, std::size_t j) const {
    if (i == j) return 0;
    if (squared_distances_ != nullptr) return squared_distances_[packed_index(i, j)];
    const double square = (*this)(i, i) + (*this)(j, j) - 2 * (*this)(i, j);
    return square > 0 ? square : 0;
  }
  /// Whether squared distances have been measured.
  ADASUM_HOST_DEVICE constexpr bool has_squared_distances() const { return squared_distances_ != nullptr; }

 private:
  const double* packed_;
  const double* squared_distances_;
  std::size_t n_;
};

/// How good inner products must be for a rule: its member `needs` (concepts.hpp). Each asks for more than the one before.
enum class inner_products {
  none,   ///< it uses none (a sum, for example); it may then be given zeros
  usual,  ///< as the space measures them
  accurate,  ///< it looks at differences of nearly equal numbers, such as a matrix's small eigenvalues: |error of gᵢ·gⱼ| is
             ///< a few times 2⁻⁵³‖gᵢ‖‖gⱼ‖, if the space measures in double
  distances  ///< for rules of n vectors that compare gram.squared_distance(i, j), even if distances are short compared with
             ///< the vectors. If inner products are not accurate enough, differences of vectors are measured
};

/// What a rule's parameters() returns: numbers, truth values and choices, all as double.
template <class... Values>
constexpr std::array<double, sizeof...(Values)> parameter_list(Values... values) {
  return {static_cast<double>(values)...};
}

/// What a pairwise rule knows of two vectors a and b.
struct pair_gram {
  double aa;                 ///< a·a
  double ab;                 ///< a·b
  double bb;                 ///< b·b
  std::size_t leaves_a = 1;  ///< how many gradients a combines
  std::size_t leaves_b = 1;  ///< how many gradients b combines
};

/// The result of a pairwise rule: the combination is a·(vector a) + b·(vector b).
struct pair_weights {
  double a;  ///< of the first vector
  double b;  ///< of the second vector
};

}  // namespace adasum
