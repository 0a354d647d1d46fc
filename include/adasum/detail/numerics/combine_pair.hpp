// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/space_members.hpp"
#include "../../core/weighing.hpp"
#include "../../rules/adasum.hpp"

/// measure → weigh → mix of two gradients of this process under rules::adasum, window by window.
namespace adasum::detail {

/// rules::adasum of one segment of two vectors of this process on copies of them, where their inner products do not suffice:
/// what recombine.hpp does for any rule and number of vectors, with the same bits, in a fraction of the code.
///
/// The copies are in double, wherever the space offers that. Where squares leave the range, each copy is multiplied by a power
/// of two that brings its norm near 1.
template <scalar T, class Space>
class exact_pair {
  using space_type = std::remove_cvref_t<decltype(space_of_copies<T>(std::declval<const Space&>()))>;
  using element = std::conditional_t<recombines_in_double<Space, T>, double, T>;

 public:
  exact_pair(const Space& space, const T* a, const T* b, std::size_t length)
      : space_(space_of_copies<T>(space)), length_(length), memory_(space_.template allocate<element>(2 * length)) {
    fence_on_failure<space_type> guard(space_);
    space_.copy(a, copy(0), length);
    space_.copy(b, copy(1), length);
    combine();
    guard.dismiss();
  }

  /// Returns when the result is there, rounded.
  void write(T* out) const {
    multiply(0, -exponent_[0]);
    space_.copy(static_cast<const element*>(copy(0)), out, length_);
    space_.fence();
  }

 private:
  element* copy(std::size_t i) const { return memory_.data() + i * length_; }

  /// In place of the first copy, which is 2^exponent_[0] times the result then.
  void combine() {
    measure(2);
    const bool is_multiplied = bring_into_range();
    const bool is_finite = detail::is_finite(gram_[0]) && detail::is_finite(gram_[2]);
    const bool is_rescaled = is_multiplied && is_finite;
    if (is_rescaled) bring_near_one();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    double weights[2] = {nan, nan}, terms[2] = {};
    int back = 0;  // as an exponent of two, what the rule's weights are multiplied by
    if (is_finite) weigh(is_rescaled, weights, terms, back);
    mix(2, weights);
    measure(1);
    if (!is_finite || !detail::is_finite(gram_[0])) return;
    // One rounding of each term and of the sum, and a few of double in the weights: shorter results are nothing but that.
    constexpr double rounding = 2 * unit_roundoff(format_of<element>) + 8 * unit_roundoff(number_format::binary64);
    if (!(norm_of_result(is_multiplied) <= std::hypot(rounding * terms[0], rounding * terms[1]))) return;
    const double zero = 0;
    mix(1, &zero);
    exponent_[0] = 0;
  }

  /// Multiplies copies whose squares are out of range. @return whether there are any
  bool bring_into_range() {
    constexpr int step = format_of<T> == number_format::binary64 ? 600 : 128;
    int by[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const bool is_small = square(i) < smallest_safe_square && square(i) > 0;
      // NaN hides whether other elements are long.
      const bool is_large = square(i) > largest_mixed_square(format_of<T>) || is_nan(square(i));
      by[i] = is_large ? -step : is_small ? step : 0;
    }
    if (by[0] == 0 && by[1] == 0) return false;
    multiply_both(by);
    return true;
  }
  void bring_near_one() {
    int by[2];
    for (std::size_t i = 0; i < 2; ++i) by[i] = square(i) > 0 ? -magnitude_of_square(i) : 0;
    multiply_both(by);
  }

  /// The weights of the copies as they are, what the terms have been before that: |weight|·norm.
  ///
  /// The rule is told of vectors of which the longer one's norm is near 1, and of which none is below 2^-100: a shorter one
  /// is enlarged, which changes the result by less than its rounding.
  void weigh(bool is_rescaled, double* weights, double* terms, int& back) {
    int missing[2] = {0, 0};
    if (is_rescaled) {
      constexpr int unknown = std::numeric_limits<int>::min(), lift = 100;
      int magnitude[2], largest = unknown;
      for (std::size_t i = 0; i < 2; ++i) {
        magnitude[i] = square(i) > 0 ? magnitude_of_square(i) - exponent_[i] : unknown;
        largest = std::max(largest, magnitude[i]);
      }
      for (std::size_t i = 0; i < 2; ++i)
        if (magnitude[i] != unknown) missing[i] = -largest + std::max(0, largest - magnitude[i] - lift) - exponent_[i];
      back = largest == unknown ? 0 : largest;
    }
    const double aa = std::ldexp(gram_[0], 2 * missing[0]), ab = std::ldexp(gram_[1], missing[0] + missing[1]),
                 bb = std::ldexp(gram_[2], 2 * missing[1]);
    const auto found = rules::adasum{}(pair_gram{aa, ab, bb});
    terms[0] = unscaled(std::abs(found.a) * std::sqrt(aa), back);
    terms[1] = unscaled(std::abs(found.b) * std::sqrt(bb), back);
    weights[0] = found.a;
    weights[1] = found.b;
    if (is_rescaled) rescale_weights(weights, back + missing[0], back + missing[1]);
  }
  /// Times the powers of two that are missing, and one by which the longest term comes near 1.
  void rescale_weights(double* weights, int first, int last) {
    const int missing[2] = {first, last};
    constexpr int unknown = std::numeric_limits<int>::min();
    int longest = unknown;
    for (std::size_t i = 0; i < 2; ++i)
      if (square(i) > 0 && !is_zero(weights[i]) && is_finite(weights[i]))
        longest = std::max(longest, std::ilogb(weights[i]) + missing[i] + magnitude_of_square(i));
    exponent_[0] = longest == unknown ? 0 : -longest;
    for (std::size_t i = 0; i < 2; ++i)
      weights[i] = square(i) > 0 ? std::ldexp(weights[i], missing[i] + exponent_[0]) : 0;
  }

  double norm_of_result(bool is_multiplied) const {
    const int magnitude = is_multiplied && square(0) > 0 ? magnitude_of_square(0) - exponent_[0] : 0;
    return unscaled(std::sqrt(std::ldexp(square(0), -2 * (exponent_[0] + magnitude))), magnitude);
  }

  double square(std::size_t i) const { return gram_[packed_index(i, i)]; }
  int magnitude_of_square(std::size_t i) const { return std::ilogb(std::sqrt(square(i))); }
  /// A number times a power of two; the largest double where that is finite and beyond it.
  static double unscaled(double number, int exponent) {
    const double result = std::ldexp(number, exponent);
    return detail::is_finite(number) ? std::min(result, std::numeric_limits<double>::max()) : result;
  }

  void multiply_both(const int* by) {
    for (std::size_t i = 0; i < 2; ++i) {
      multiply(i, by[i]);
      exponent_[i] += by[i];
    }
    measure(2);
  }
  /// By 2^exponent, in steps that a double can hold.
  void multiply(std::size_t i, int exponent) const {
    const std::size_t offsets[] = {0, length_};
    const element* const in[] = {copy(i)};
    for (int step; exponent != 0; exponent -= step) {
      step = std::clamp(exponent, -1000, 1000);
      const double factor = std::ldexp(1.0, step);
      own_pairs<space_type>::mix(space_, whole(segments_view{offsets}), std::span<const element* const>(in), &factor,
                                 copy(i), 0);
    }
  }
  void mix(std::size_t n, const double* weights) const {
    const std::size_t offsets[] = {0, length_};
    const element* const in[] = {copy(0), copy(1)};
    own_pairs<space_type>::mix(space_, whole(segments_view{offsets}), std::span<const element* const>(in, n), weights,
                               copy(0), 0);
  }
  void measure(std::size_t n) {
    const std::size_t offsets[] = {0, length_};
    const element* const in[] = {copy(0), copy(1)};
    own_pairs<space_type>::measure(space_, whole(segments_view{offsets}), std::span<const element* const>(in, n),
                                   static_cast<double*>(gram_), 0);
    space_.fence();
  }

  space_type space_;
  std::size_t length_;
  mutable decltype(std::declval<const space_type&>().template allocate<element>(0)) memory_;
  double gram_[packed_size(2)] = {};
  int exponent_[2] = {0, 0};  // by what each copy has been multiplied
};

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
    double few[most_in_round * numbers_of_segment];
    if constexpr (has_caches) {
      for (std::size_t first = 0, count = 0; first < segments_.size(); first += count) {
        count = segments_of_round(segments_, first, 2 * sizeof(T), own_round_bytes<Space>);
        combine(segments_.part(first, count), few);
      }
    } else {
      std::vector<double> many(segments_.size() > most_in_round ? segments_.size() * numbers_of_segment : 0);
      if (segments_.size() != 0) combine(segments_, many.empty() ? few : many.data());
    }
    space_.fence();
    guard.dismiss();
  }

 private:
  /// Spaces that compute from caches get windows of so many bytes; others get everything.
  static constexpr bool has_caches = own_round_bytes<Space> != 0;
  /// Inner products and weights.
  static constexpr std::size_t numbers_of_segment = packed_size(2) + 2;

  static std::size_t bytes_of(segments_view some) { return 2 * some.all().size() * sizeof(T); }

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
    own_pairs<Space>::measure(space_, window, vectors, gram, bytes_);
    space_.fence();
  }

  /// The segments [first, last).
  void mix(segments_view some, std::size_t first, std::size_t last, const double* weights) const {
    if (first == last) return;
    const slice window = whole(some.part(first, last - first));
    const std::span<const T* const> vectors(vectors_);
    own_pairs<Space>::mix(space_, window, vectors, weights + 2 * first, out_, bytes_);
  }

  const Space& space_;
  const T* vectors_[2];
  T* out_;
  segments_view segments_;
  std::size_t bytes_;
};

}  // namespace adasum::detail
