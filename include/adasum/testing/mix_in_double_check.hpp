// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/float_bits.hpp"
#include "../core/optional_members.hpp"
#include "../core/segments.hpp"
#include "space_samples.hpp"

namespace adasum::detail {

/// The part of check_execution_space that looks at mix_in_double(): from T to double, from double to T, and from T to T.
template <scalar T, class Space>
class mix_in_double_check {
 public:
  explicit mix_in_double_check(const Space& space) : space_(space) {}

  void run() const {
    if constexpr (combines_in_groups<Space, T>) check_direction<T, double>();
    if constexpr (!std::same_as<T, double> && combines_in_groups<Space, T>) check_direction<double, T>();
    if constexpr (!std::same_as<T, double> && mixes_in_double<Space, T>) check_direction<T, T>();
  }

 private:
  static constexpr double mark = 7;

  template <scalar From, scalar To>
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_space(Space::name, "mix_in_double, from " + std::string(to_string(format_of<From>)) + " to " +
                                  std::string(to_string(format_of<To>)) + ": " + what);
  }

  template <scalar From, scalar To>
  void check_direction() const {
    const sample_windows windows;
    for (const std::size_t n : {1u, 2u, 3u, 5u, 9u})
      for (const auto& window : windows.all())
        check_window<From, To>(sample_vectors<From>(n, windows.length()), window);
    for (const std::size_t n : {1u, 3u, 9u}) check_range<From, To>(n);
    for (const std::size_t n : {1u, 3u, 9u}) check_weight_zero<From, To>(n);
    for (const std::size_t n : {2u, 3u, 9u}) check_cancelling<From, To>(n);
    for (const std::size_t n : {3u, 9u}) check_places<From, To>(n);
  }

  static std::vector<double> sample_weights(std::size_t count) { return sample_vectors<double>(1, count, 3).front(); }

  template <scalar To, scalar From>
  std::vector<To> mixed(const placed_vectors<From, Space>& at, const slice& window, std::vector<double> weights) const {
    space_array<To, Space> out(space_, std::vector<To>(window.range.end - window.origin, from_double<To>(mark)));
    space_.mix_in_double(window, at.all(), weights.data(), out.at(0));
    std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());  // they have been read
    return out.read();
  }

  /// Each element against long double; all others as they were.
  template <scalar From, scalar To>
  void check_window(const host_vectors<From>& vectors, const slice& window) const {
    const auto n = vectors.size();
    const auto weights = sample_weights(n * window.segments.size());
    const placed_vectors<From, Space> at(space_, vectors, window);
    const auto out = mixed<To>(at, window, weights);
    std::vector<bool> is_mixed(out.size(), false);
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        is_mixed[x] = true;
        check_element(vectors, std::span(weights).subspan(k * n, n), window.origin + x, out[x]);
      }
    for (std::size_t x = 0; x < out.size(); ++x)
      if (!is_mixed[x] && to_double(out[x]) != mark)
        refuse<From, To>("it writes to an element outside the window (" + sample_windows::describe(window) + ")");
  }

  /// A product and a sum for each of n vectors are off by (n + 1)·2⁻⁵³ of Σ|wᵢ||vᵢ|, to first order and in any order; n·2⁻⁵⁰
  /// is at least four times that. Then the sum is rounded to To: once, or twice where To has 16 bits. Where To is double,
  /// nothing more is rounded.
  template <scalar From, scalar To>
  void check_element(const host_vectors<From>& vectors, std::span<const double> weights, std::size_t x,
                     To element) const {
    const auto n = vectors.size();
    long double sum = 0, mass = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto term = static_cast<long double>(weights[i]) * to_double(vectors[i][x]);
      sum += term;
      mass += std::abs(term);
    }
    auto allowed = static_cast<long double>(n) * 0x1p-50L * mass;
    if constexpr (!std::same_as<To, double>)
      allowed += 2 * static_cast<long double>(unit_roundoff(format_of<To>)) * std::abs(sum) + smallest_of<To>();
    const double found = to_double(element);
    if (!(std::abs(found - sum) <= allowed))
      refuse<From, To>("an element is " + text_of(found) + " instead of " + text_of(static_cast<double>(sum)) + " (" +
                       counted(n, "vector") + ")");
  }

  /// Vectors from one end of From's range to the other, with weights that bring their terms back to ordinary numbers of To.
  /// So neither may be rounded to anything narrower than double.
  template <scalar From, scalar To>
  void check_range(std::size_t n) const {
    constexpr auto from = format_of<From>;
    constexpr int farthest = from == number_format::binary64 ? 900 : from == number_format::binary16 ? 5 : 110;
    constexpr int of_terms = format_of<To> == number_format::binary16 ? 3 : 30;
    const int exponents[] = {-farthest, farthest, 0};
    const segments cut{75};
    for (const int term : {-of_terms, of_terms})
      for (std::size_t shift = 0; shift < 3; ++shift) {
        auto vectors = sample_vectors<From>(n, cut.total(), 17);
        auto weights = sample_weights(n);
        for (std::size_t i = 0; i < n; ++i) {
          const int exponent = exponents[(i + shift) % 3];
          for (From& x : vectors[i]) x = from_double<From>(std::ldexp(to_double(x), exponent));
          weights[i] = std::ldexp(weights[i], term - exponent);
        }
        const auto out = mixed<To>(placed_vectors<From, Space>(space_, vectors, whole(cut)), whole(cut), weights);
        for (std::size_t x = 0; x < out.size(); ++x) check_element(vectors, weights, x, out[x]);
      }
  }

  /// The first term and the last, which is minus the first (but for one vector, of two), are 2³⁰ times as large as what is
  /// left: floats keep none of it, and doubles more digits than a narrower To has.
  template <scalar From, scalar To>
  void check_cancelling(std::size_t n) const {
    const segments cut{75};
    auto vectors = sample_vectors<From>(n, cut.total(), 19);
    vectors.back() = vectors.front();
    auto weights = sample_weights(n);
    weights.front() = 0x1p30;
    weights.back() = (n == 2 ? 1 : 0) - 0x1p30;
    const auto out = mixed<To>(placed_vectors<From, Space>(space_, vectors, whole(cut)), whole(cut), weights);
    for (std::size_t x = 0; x < out.size(); ++x) check_element(vectors, weights, x, out[x]);
  }

  /// One vector of NaN, in the second segment.
  template <scalar From, scalar To>
  void check_weight_zero(std::size_t n) const {
    const segments cut{30, 50};
    for (std::size_t absent = 0; absent < n; ++absent) {
      auto vectors = sample_vectors<From>(n, cut.total(), 11);
      std::ranges::fill(std::span(vectors[absent]).subspan(30),
                        from_double<From>(std::numeric_limits<double>::quiet_NaN()));
      auto weights = sample_weights(2 * n);
      weights[n + absent] = 0;
      const auto out = mixed<To>(placed_vectors<From, Space>(space_, vectors, whole(cut)), whole(cut), weights);
      if (std::ranges::any_of(out, [](To x) { return is_nan(to_double(x)); }))
        refuse<From, To>("NaN in a vector of weight 0 reaches the result (" + counted(n, "vector") + ")");
    }
  }

  /// Ranks hold the same values at different addresses, and must compute the same.
  template <scalar From, scalar To>
  void check_places(std::size_t n) const {
    for (const std::size_t length : {203u, 1203u}) {
      const auto vectors = sample_vectors<From>(n, length, 5);
      const segments cut{length / 3, length - length / 3};
      const auto weights = sample_weights(2 * n);
      std::vector<To> expected;
      for (std::size_t padding = 0; padding <= 9; ++padding)
        for (const std::size_t step : {0u, 1u}) {
          const placed_vectors<From, Space> moved(space_, vectors, whole(cut), padding, step);
          const auto out = mixed<To>(moved, whole(cut), weights);
          if (expected.empty()) expected = out;
          if (std::memcmp(out.data(), expected.data(), length * sizeof(To)) != 0)
            refuse<From, To>("the same vectors at other addresses give other bits (" + counted(n, "vector") + ")");
        }
    }
  }

  const Space& space_;
};

}  // namespace adasum::detail
