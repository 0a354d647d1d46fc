// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "../../core/weighing.hpp"
#include "../../rules/adasum.hpp"
#include "exact_pair.hpp"
#include "fence_on_failure.hpp"

/// measure → weigh → mix of two gradients of this process under rules::adasum, window by window.
namespace adasum::detail {

/// A segment that inner products cannot decide. Rare, so that it is a function of its own.
template <scalar T, class Space>
[[gnu::noinline]] void combine_undecided(const Space& space, const T* a, const T* b, T* out, std::size_t length) {
  exact_pair<T, Space>(space, a, b, length).write(out);
}

/// The weights of a segment. @param gram  three inner products. @param weights  receives two
inline weighing weigh_pair(const double* gram, const weighing_limits& limits, double* weights) {
  const auto quality = weighing_of_squares({gram, 2}, limits.largest_square);
  if (quality == weighing::nonfinite) weights[0] = weights[1] = std::numeric_limits<double>::quiet_NaN();
  if (quality != weighing::good) return quality;
  const pair_gram moments{gram[0], gram[1], gram[2]};
  const auto pair = rules::adasum{}(moments);
  weights[0] = pair.a;
  weights[1] = pair.b;
  return cancels(moments, pair, limits) ? weighing::needs_vectors : weighing::good;
}

/// The call, for one space and element type.
template <scalar T, class Space>
class pair_combination {
 public:
  pair_combination(const Space& space, const T* a, const T* b, T* out, segments_view segments)
      : space_(space), vectors_{a, b}, out_(out), segments_(segments), bytes_(bytes_of(segments)) {}

  void run() const {
    fence_on_failure<Space> guard(space_);
    double few[most * numbers_of_segment];
    if constexpr (has_caches) {
      for (std::size_t first = 0, count = 0; first < segments_.size(); first += count) {
        count = window_from(first);
        combine(segments_.part(first, count), few);
      }
    } else {
      std::vector<double> many(segments_.size() > most ? segments_.size() * numbers_of_segment : 0);
      if (segments_.size() != 0) combine(segments_, many.empty() ? few : many.data());
    }
    space_.fence();
    guard.dismiss();
  }

 private:
  /// Spaces that compute from caches get windows of so many bytes, and of so many segments at most; others get everything.
  static constexpr bool has_caches = own_caches<Space>::round_bytes != 0;
  static constexpr std::size_t most = 64;
  /// Inner products and weights.
  static constexpr std::size_t numbers_of_segment = packed_size(2) + 2;

  static std::size_t bytes_of(segments_view some) { return 2 * some.all().size() * sizeof(T); }

  /// How many segments the window has that begins with this one: at least one.
  std::size_t window_from(std::size_t first) const {
    const std::size_t last = std::min(segments_.size(), first + most);
    const std::size_t* const offsets = segments_.offsets().data();
    std::size_t end = first + 1;
    while (end < last && 2 * sizeof(T) * (offsets[end + 1] - offsets[first]) <= own_caches<Space>::round_bytes) ++end;
    return end - first;
  }

  /// @param numbers  memory for inner products and weights
  void combine(segments_view some, double* numbers) const {
    const std::size_t count = some.size();
    double *const gram = numbers, *const weights = numbers + count * packed_size(2);
    measure(some, gram);
    constexpr auto limits = limits_for(format_of<T>, 2, recombines_in_double<Space, T>);
    std::size_t decided = 0;  // those before have been mixed, or need nothing more
    for (std::size_t k = 0; k < count; ++k) {
      if (weigh_pair(gram + packed_size(2) * k, limits, weights + 2 * k) != weighing::needs_vectors) continue;
      mix(some, decided, k, weights);
      const auto [begin, end] = some.range(k);
      combine_undecided(space_, vectors_[0] + begin, vectors_[1] + begin, out_ + begin, end - begin);
      decided = k + 1;
    }
    mix(some, decided, count, weights);
  }

  void measure(segments_view some, double* gram) const {
    const slice window = whole(some);
    const std::span<const T* const> vectors(vectors_);
    // Each window is short, but all of them together may be more than the caches hold.
    own_caches<Space>::measure(space_, window, vectors, gram, bytes_);
    space_.fence();
  }

  /// The segments [first, last).
  void mix(segments_view some, std::size_t first, std::size_t last, const double* weights) const {
    if (first == last) return;
    const slice window = whole(some.part(first, last - first));
    const std::span<const T* const> vectors(vectors_);
    own_caches<Space>::mix(space_, window, vectors, weights + 2 * first, out_, bytes_);
  }

  const Space& space_;
  const T* vectors_[2];
  T* out_;
  segments_view segments_;
  std::size_t bytes_;
};

}  // namespace adasum::detail
