// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>

namespace adasum {

/// Entries of a packed symmetric n×n matrix.
ADASUM_HOST_DEVICE constexpr std::size_t packed_size(std::size_t n) { return n * (n + 1) / 2; }

/// Where entry (i, j) of a packed symmetric matrix lies: the lower triangle, row by row.
ADASUM_HOST_DEVICE constexpr std::size_t packed_index(std::size_t i, std::size_t j) {
  return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i;
}

/// The Gram matrix of n vectors, G(i, j) = gᵢ·gⱼ, packed (packed_size(n) doubles). Does not own them.
class gram_view {
 public:
  ADASUM_HOST_DEVICE constexpr gram_view(const double* packed, std::size_t n) : packed_(packed), n_(n) {}

  ADASUM_HOST_DEVICE constexpr std::size_t size() const { return n_; }
  ADASUM_HOST_DEVICE constexpr double operator()(std::size_t i, std::size_t j) const {
    return packed_[packed_index(i, j)];
  }

 private:
  const double* packed_;
  std::size_t n_;
};

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
  double a;
  double b;
};

}  // namespace adasum
