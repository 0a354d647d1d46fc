// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "../../core/concepts.hpp"

namespace adasum::detail {

/// Copies of one segment's elements of n vectors, to be rescaled and combined in place.
template <scalar T, execution_space<T> Space>
class segment_copies {
 public:
  segment_copies(const Space& space, std::span<const T* const> vectors, index_range elements)
      : space_(space), length_(elements.size()), memory_(space.template allocate<T>(vectors.size() * elements.size())) {
    for (std::size_t i = 0; i < vectors.size(); ++i) space_.copy(vectors[i] + elements.begin, at(i), length_);
  }

  T* at(std::size_t i) const { return memory_.data() + i * length_; }

  /// v ← 2^exponent · v, in steps that a double can hold.
  void scale(T* v, int exponent) const {
    while (exponent != 0) {
      const int step = std::clamp(exponent, -1000, 1000);
      const double factor = std::ldexp(1.0, step);
      const T* const in = v;
      mix(std::span(&in, 1), &factor, v);
      exponent -= step;
    }
  }

  /// Returns when the packed matrix is there.
  void measure(std::span<const T* const> vectors, double* gram) const {
    const std::array<std::size_t, 2> offsets{0, length_};
    space_.measure(whole(segments_view{offsets}), vectors, gram);
    space_.fence();
  }

  void mix(std::span<const T* const> vectors, const double* weights, T* out) const {
    const std::array<std::size_t, 2> offsets{0, length_};
    space_.mix(whole(segments_view{offsets}), vectors, weights, out);
  }

  void copy_to(T* out) const { space_.copy(static_cast<const T*>(at(0)), out, length_); }

 private:
  const Space& space_;
  std::size_t length_;
  mutable decltype(std::declval<const Space&>().template allocate<T>(0)) memory_;  // the copies are its elements
};

}  // namespace adasum::detail
