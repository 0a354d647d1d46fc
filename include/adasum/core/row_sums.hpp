// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cmath>
#include <cstddef>
#include <span>

#include "gram.hpp"

namespace adasum {

/// Of the Gram matrix of n vectors, the norms and the row sums:
///
///     norm(i) = ‖gᵢ‖ = √G(i, i),   row_sum(i) = Σⱼ G(i, j) = gᵢ·Σⱼgⱼ
///
/// Among ranks, these 2n numbers take O(N) arithmetic, where the matrix takes O(n²N). A Gram matrix is converted to this
/// view, so that a rule which is written for it is a rule of Gram matrices, too. Does not own the numbers.
class row_sums_view {
 public:
  /// From the matrix: row_sum(i) adds the row at each call.
  row_sums_view(gram_view gram) : gram_(gram) {}
  /// From the numbers. @param row_sums  one for each norm; none for a rule that needs none
  row_sums_view(std::span<const double> norms, std::span<const double> row_sums)
      : gram_(nullptr, norms.size()), norms_(norms.data()), row_sums_(row_sums.data()) {}

  /// How many vectors: n.
  std::size_t size() const { return gram_.size(); }
  /// ‖gᵢ‖
  double norm(std::size_t i) const { return norms_ ? norms_[i] : std::sqrt(gram_(i, i)); }
  /// gᵢ·Σⱼgⱼ
  double row_sum(std::size_t i) const {
    if (norms_) return row_sums_[i];
    double sum = 0;
    for (std::size_t j = 0; j < size(); ++j) sum += gram_(i, j);
    return sum;
  }

 private:
  gram_view gram_;
  const double* norms_ = nullptr;
  const double* row_sums_ = nullptr;
};

}  // namespace adasum
