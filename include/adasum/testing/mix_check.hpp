// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/float_bits.hpp"
#include "../core/segments.hpp"
#include "space_samples.hpp"

namespace adasum::detail {

/// The part of check_execution_space that looks at mix().
template <scalar T, class Space>
class mix_check {
 public:
  explicit mix_check(const Space& space) : space_(space) {}

  void run() const {
    const sample_windows windows;
    for (const std::size_t n : {1u, 2u, 3u, 5u, 9u})
      for (const auto& window : windows.all()) check_window(sample_vectors<T>(n, windows.length()), window);
    for (const std::size_t n : {1u, 2u, 3u}) check_places(n);
    for (const std::size_t n : {1u, 2u, 3u}) check_range_of_weights(n);
    check_weight_zero();
  }

 private:
  static constexpr double mark = 7;

  [[noreturn]] void refuse(const std::string& what) const { refuse_space(Space::name, "mix: " + what); }

  static std::vector<double> sample_weights(std::size_t count) { return sample_vectors<double>(1, count, 3).front(); }
  std::vector<T> marked(const slice& window) const {
    return std::vector<T>(window.range.end - window.origin, from_double<T>(mark));
  }
  template <class AnySpace>
  std::vector<T> mixed_by(const AnySpace& space, const placed_vectors<T, Space>& at, const slice& window,
                          std::vector<double> weights) const {
    space_array<T, Space> out(space_, marked(window));
    space.mix(window, at.all(), weights.data(), out.at(0));
    std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());  // mix has read them
    return out.read();
  }
  static bool same_bits(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }

  /// Each element against long double; all others as they were.
  void check_window(const host_vectors<T>& vectors, const slice& window) const {
    const auto n = vectors.size();
    const auto weights = sample_weights(n * window.segments.size());
    const placed_vectors<T, Space> at(space_, vectors, window);
    const auto out = mixed_by(space_, at, window, weights);
    std::vector<bool> is_mixed(out.size(), false);
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        is_mixed[x] = true;
        check_element(vectors, std::span(weights).subspan(k * n, n), window.origin + x, to_double(out[x]));
      }
    for (std::size_t x = 0; x < out.size(); ++x)
      if (!is_mixed[x] && to_double(out[x]) != mark)
        refuse("it writes to an element outside the window (" + sample_windows::describe(window) + ")");
    if constexpr (has_space_for_pairs<Space>)
      if (n <= 2 && !same_bits(mixed_by(space_for_pairs(space_), at, window, weights), out))
        refuse("the space for pairs has other results");
  }

  void check_element(const host_vectors<T>& vectors, std::span<const double> weights, std::size_t x,
                     double found) const {
    const auto unit = static_cast<long double>(unit_roundoff(format_of<T>));
    const auto of_sum = format_of<T> == number_format::binary64 ? 0x1p-50L : 0x1p-21L;
    long double sum = 0, mass = 0;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      const auto term = static_cast<long double>(weights[i]) * to_double(vectors[i][x]);
      sum += term;
      mass += std::abs(term);
    }
    const auto allowed = 2 * unit * std::abs(sum) + static_cast<long double>(vectors.size()) * of_sum * mass +
                         static_cast<long double>(smallest_of<T>());
    if (!(std::abs(found - sum) <= allowed))
      refuse("an element is " + text_of(found) + " instead of " + text_of(static_cast<double>(sum)) + " (" +
             counted(vectors.size(), "vector") + ")");
  }

  /// Weights that no T may hold, of vectors so short or so long that their terms are ordinary numbers.
  void check_range_of_weights(std::size_t n) const {
    constexpr bool is_double = format_of<T> == number_format::binary64;
    constexpr int farthest = is_double ? 900 : format_of<T> == number_format::binary16 ? 5 : 110;
    constexpr int of_terms = is_double ? 60 : format_of<T> == number_format::binary16 ? 3 : 30;
    const int exponents[] = {-farthest, farthest, 0};
    const segments cut{75};
    for (const int term : {-of_terms, of_terms})
      for (std::size_t shift = 0; shift < 3; ++shift) {
        auto vectors = sample_vectors<T>(n, cut.total(), 17);
        auto weights = sample_weights(n);
        for (std::size_t i = 0; i < n; ++i) {
          const int exponent = exponents[(i + shift) % 3];
          for (T& x : vectors[i]) x = from_double<T>(std::ldexp(to_double(x), exponent));
          weights[i] = std::ldexp(weights[i], term - exponent);
        }
        const auto out = mixed_by(space_, {space_, vectors, whole(cut)}, whole(cut), weights);
        for (std::size_t x = 0; x < out.size(); ++x) check_element(vectors, weights, x, to_double(out[x]));
        if constexpr (has_space_for_pairs<Space>)
          if (n <= 2 &&
              !same_bits(mixed_by(space_for_pairs(space_), {space_, vectors, whole(cut)}, whole(cut), weights), out))
            refuse("the space for pairs has other results");
      }
  }

  /// Ranks hold the same values at different addresses, and write where one of the vectors is.
  void check_places(std::size_t n) const {
    for (const std::size_t length : {203u, 1203u}) {
      const auto vectors = sample_vectors<T>(n, length, 5);
      const segments cut{length / 3, length - length / 3};
      const auto window = whole(cut);
      const auto weights = sample_weights(2 * n);
      const auto expected = mixed_by(space_, {space_, vectors, window}, window, weights);
      for (std::size_t padding = 0; padding <= 9; ++padding)
        for (const std::size_t step : {0u, 1u}) {
          const placed_vectors<T, Space> moved(space_, vectors, window, padding, step);
          if (!same_bits(mixed_by(space_, moved, window, weights), expected))
            refuse("the same vectors at other addresses give other bits (" + counted(n, "vector") + ")");
        }
      for (std::size_t i = 0; i < n; ++i) {
        placed_vectors<T, Space> inputs(space_, vectors, window);
        space_.mix(window, inputs.all(), weights.data(), inputs.at(i));
        if (!same_bits(inputs.array(i).read(), expected))
          refuse("the result differs where it is written to vector " + std::to_string(i) + " of " + std::to_string(n));
      }
    }
  }

  /// One vector of NaN, in the one or the other segment.
  void check_weight_zero() const {
    const segments cut{30, 50};
    for (const std::size_t n : {1u, 2u, 3u, 5u})
      for (std::size_t absent = 0; absent < n; ++absent) {
        auto vectors = sample_vectors<T>(n, cut.total(), 11);
        std::ranges::fill(std::span(vectors[absent]).subspan(30),
                          from_double<T>(std::numeric_limits<double>::quiet_NaN()));
        auto weights = sample_weights(2 * n);
        weights[n + absent] = 0;
        const auto out = mixed_by(space_, {space_, vectors, whole(cut)}, whole(cut), weights);
        if (std::ranges::any_of(out, [](T x) { return is_nan(to_double(x)); }))
          refuse("NaN in a vector of weight 0 reaches the result (" + counted(n, "vector") + ")");
      }
  }

  const Space& space_;
};

}  // namespace adasum::detail
