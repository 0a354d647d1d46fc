// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/optional_members.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "../references/space_ref.hpp"

namespace adasum::detail {

/// Copies of one segment's elements of n vectors, to be rescaled and combined in place: in double, wherever the space
/// offers that. There may be room for more vectors behind them. Elements that are measured elsewhere do not count in inner
/// products.
class segment_copies {
 public:
  /// @param space  that of the vectors
  /// @param in     that of the copies; must outlive this object
  segment_copies(const space_ref& space, const space_for_copies& in, vector_list vectors, index_range elements,
                 std::span<const index_range> measured_elsewhere = {}, std::size_t more = 0)
      : in_(&in),
        elsewhere_(measured_elsewhere.begin(), measured_elsewhere.end()),
        length_(elements.size()),
        memory_(in.space.allocate((vectors.size() + more) * elements.size())) {
    fence_on_failure guard(in.space);
    for (std::size_t i = 0; i < vectors.size(); ++i)
      in.copy_in(in.space.object(), space.at(vectors[i], elements.begin), at(i), length_);
    guard.dismiss();
  }

  std::byte* at(std::size_t i) const { return in_->space.at(memory_.data(), i * length_); }

  /// v ← 2^exponent · v, in steps that a double can hold.
  void scale(void* v, int exponent) const { scale(v, {0, length_}, exponent); }
  void scale(void* v, index_range elements, int exponent) const {
    while (exponent != 0) {
      const int step = std::clamp(exponent, -1000, 1000);
      const double factor = std::ldexp(1.0, step);
      const void* const in = v;
      mix(std::span(&in, 1), elements, &factor, v);
      exponent -= step;
    }
  }

  /// Returns when the packed matrix is there: of all elements, or of some.
  void measure(vector_list vectors, double* gram) const { measure(vectors, {0, length_}, gram); }
  void measure(vector_list vectors, index_range elements, double* gram) const {
    if (elsewhere_.empty()) return measure_range(vectors, elements, gram);
    const auto entries = packed_size(vectors.size());
    std::vector<double> one(entries);
    std::fill_n(gram, entries, 0.0);
    const auto add = [&](std::size_t begin, std::size_t end) {
      if (begin >= end) return;
      measure_range(vectors, {begin, end}, one.data());
      for (std::size_t x = 0; x < entries; ++x) gram[x] += one[x];
    };
    auto begin = elements.begin;
    for (const auto& skipped : elsewhere_) {
      if (skipped.end <= begin) continue;
      add(begin, std::min(skipped.begin, elements.end));
      begin = skipped.end;
    }
    add(begin, elements.end);
  }

  void mix(vector_list vectors, const double* weights, void* out) const { mix(vectors, {0, length_}, weights, out); }
  void mix(vector_list vectors, index_range elements, const double* weights, void* out) const {
    const std::array<std::size_t, 2> offsets{elements.begin, elements.end};
    in_->space.mix(whole(segments_view{offsets}), vectors, weights, out);
  }

  /// Rounds the first of them, if it is to be.
  void copy_to(void* out) const { in_->copy_out(in_->space.object(), at(0), out, length_); }

 private:
  void measure_range(vector_list vectors, index_range elements, double* gram) const {
    const std::array<std::size_t, 2> offsets{elements.begin, elements.end};
    in_->space.measure(whole(segments_view{offsets}), vectors, gram);
    in_->space.fence();
  }

  const space_for_copies* in_;
  std::vector<index_range> elsewhere_;
  std::size_t length_;
  space_memory memory_;
};

}  // namespace adasum::detail
