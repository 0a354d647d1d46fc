// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/float_bits.hpp"
#include "../../core/gram.hpp"
#include "../../core/segments.hpp"
#include "../../core/weigh.hpp"
#include "../local/segment_copies.hpp"

namespace adasum::detail {

/// ‖v‖ of each segment of a vector v, and its projection v·m / ‖v‖ on another one (0 if v is zero). A segment whose
/// squares leave the range of double is measured again on copies times powers of two, for which it allocates.
template <scalar T, execution_space<T> Space>
class row_sum_measures {
 public:
  /// @param space, segments  must outlive this object
  row_sum_measures(const Space& space, segments_view segments)
      : space_(space), segments_(segments), gram_(segments.size() * packed_size(2)) {}

  void measure(const T* v, const T* m, std::span<double> norms, std::span<double> projections) {
    const std::array<const T*, 2> vectors{v, m};
    measure(vectors, [&](std::size_t k, const double* gram, const std::array<int, 2>& times) {
      const double norm = std::sqrt(gram[0]);
      norms[k] = std::ldexp(norm, -times[0]);
      projections[k] = norm > 0 ? std::ldexp(gram[1] / norm, -times[1]) : 0;
    });
  }
  void measure(const T* v, std::span<double> norms) {
    const std::array<const T*, 1> vectors{v};
    measure(vectors, [&](std::size_t k, const double* gram, const std::array<int, 1>& times) {
      norms[k] = std::ldexp(std::sqrt(gram[0]), -times[0]);
    });
  }

 private:
  static bool is_safe(double square) {
    return square == 0 || (square >= smallest_safe_square && square <= largest_safe_square);
  }

  /// note(k, gram, exponents): the packed Gram matrix of the vectors of segment k, each times 2^exponent.
  template <std::size_t Count, class Note>
  void measure(const std::array<const T*, Count>& vectors, const Note& note) {
    space_.measure(whole(segments_), std::span<const T* const>(vectors), gram_.data());
    space_.fence();
    for (std::size_t k = 0; k < segments_.size(); ++k) {
      double* const gram = gram_.data() + k * packed_size(Count);
      std::array<int, Count> times{};
      bool all_safe = true;
      for (std::size_t i = 0; i < Count; ++i) all_safe &= is_safe(gram[packed_index(i, i)]);
      if (!all_safe) times = measure_rescaled(vectors, k, gram);
      note(k, static_cast<const double*>(gram), times);
    }
  }

  /// @return by which exponents of two
  template <std::size_t Count>
  std::array<int, Count> measure_rescaled(const std::array<const T*, Count>& vectors, std::size_t k, double* gram) {
    constexpr int step = 600;
    const segment_copies<T, Space> copies(space_, std::span<const T* const>(vectors), segments_.range(k));
    std::array<int, Count> times{};
    std::array<const typename segment_copies<T, Space>::element*, Count> scaled{};
    for (std::size_t i = 0; i < Count; ++i) {
      const double square = gram[packed_index(i, i)];
      if (!is_safe(square)) times[i] = square < smallest_safe_square ? step : -step;  // NaN: either
      copies.scale(copies.at(i), times[i]);
      scaled[i] = copies.at(i);
    }
    copies.measure(std::span<const typename segment_copies<T, Space>::element* const>(scaled), gram);
    return times;
  }

  const Space& space_;
  segments_view segments_;
  std::vector<double> gram_;
};

}  // namespace adasum::detail
