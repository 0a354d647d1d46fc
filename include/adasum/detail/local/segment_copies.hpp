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

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/segments.hpp"
#include "fence_on_failure.hpp"

namespace adasum::detail {

/// Copies of one segment's elements of n vectors, to be rescaled and combined in place: in double, wherever the space
/// offers that. There may be room for more vectors behind them. Elements that are measured elsewhere do not count in inner
/// products.
template <scalar T, execution_space<T> Space>
class segment_copies {
  using space_type = std::remove_cvref_t<decltype(space_of_copies<T>(std::declval<const Space&>()))>;

 public:
  using element = std::conditional_t<recombines_in_double<Space, T>, double, T>;

  segment_copies(const Space& space, std::span<const T* const> vectors, index_range elements,
                 std::span<const index_range> measured_elsewhere = {}, std::size_t more = 0)
      : space_(space_of_copies<T>(space)),
        elsewhere_(measured_elsewhere.begin(), measured_elsewhere.end()),
        length_(elements.size()),
        memory_(space_.template allocate<element>((vectors.size() + more) * elements.size())) {
    fence_on_failure<space_type> guard(space_);
    for (std::size_t i = 0; i < vectors.size(); ++i) space_.copy(vectors[i] + elements.begin, at(i), length_);
    guard.dismiss();
  }

  element* at(std::size_t i) const { return memory_.data() + i * length_; }

  /// v ← 2^exponent · v, in steps that a double can hold.
  void scale(element* v, int exponent) const { scale(v, {0, length_}, exponent); }
  void scale(element* v, index_range elements, int exponent) const {
    while (exponent != 0) {
      const int step = std::clamp(exponent, -1000, 1000);
      const double factor = std::ldexp(1.0, step);
      const element* const in = v;
      mix(std::span(&in, 1), elements, &factor, v);
      exponent -= step;
    }
  }

  /// Returns when the packed matrix is there: of all elements, or of some.
  void measure(std::span<const element* const> vectors, double* gram) const { measure(vectors, {0, length_}, gram); }
  void measure(std::span<const element* const> vectors, index_range elements, double* gram) const {
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

  void mix(std::span<const element* const> vectors, const double* weights, element* out) const {
    mix(vectors, {0, length_}, weights, out);
  }
  void mix(std::span<const element* const> vectors, index_range elements, const double* weights, element* out) const {
    const std::array<std::size_t, 2> offsets{elements.begin, elements.end};
    space_.mix(whole(segments_view{offsets}), vectors, weights, out);
  }

  /// Rounds the first of them, if it is to be.
  void copy_to(T* out) const { space_.copy(static_cast<const element*>(at(0)), out, length_); }

 private:
  void measure_range(std::span<const element* const> vectors, index_range elements, double* gram) const {
    const std::array<std::size_t, 2> offsets{elements.begin, elements.end};
    space_.measure(whole(segments_view{offsets}), vectors, gram);
    space_.fence();
  }

  space_type space_;
  std::vector<index_range> elsewhere_;
  std::size_t length_;
  mutable decltype(std::declval<const space_type&>().template allocate<element>(0)) memory_;
};

}  // namespace adasum::detail
