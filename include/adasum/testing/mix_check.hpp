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
#include "../core/scalar.hpp"
#include "../core/segments.hpp"
#include "../core/space_members.hpp"
#include "space_samples.hpp"

namespace adasum::detail {

/// The part of check_execution_space that looks at mix(), or at mix_in_double() from one type to the same or another: the same
/// contract, but for its accuracy.
template <class Space, scalar From, scalar To = From, bool InDouble = false>
class mix_check {
 public:
  explicit mix_check(const Space& space) : space_(space) {}

  void run() const {
    const sample_windows windows;
    for (const std::size_t n : {1u, 2u, 3u, 5u, 9u}) {
      const auto vectors = sample_vectors<From>(n, windows.length());
      for (const auto& window : windows.all())
        check_window(vectors, window, sample_weights(n * window.segments.size()));
      check_range_of_weights(n);
      check_weight_zero(n);
      if (InDouble && n > 1) check_cancelling(n);
      check_places(n);
    }
  }

 private:
  static constexpr double mark = 7;
  static constexpr bool to_doubles = format_of<To> == number_format::binary64;

  [[noreturn]] void refuse(const std::string& what) const {
    const std::string call = InDouble ? "mix_in_double, from " + std::string(to_string(format_of<From>)) + " to " +
                                            std::string(to_string(format_of<To>))
                                      : "mix";
    refuse_space(space_.name, call + ": " + what);
  }

  static std::vector<double> sample_weights(std::size_t count) { return sample_vectors<double>(1, count, 3).front(); }

  std::vector<To> mixed(const placed_vectors<From, Space>& at, const slice& window, std::vector<double> weights) const {
    return written_by(window, [&](To* out) {
      if constexpr (InDouble)
        space_.mix_in_double(window, at.all(), weights.data(), out);
      else
        space_.mix(window, at.all(), weights.data(), out);
      std::ranges::fill(weights, std::numeric_limits<double>::quiet_NaN());  // they have been read
    });
  }
  template <class Mix>
  std::vector<To> written_by(const slice& window, const Mix& mix) const {
    space_array<To, Space> out(space_, std::vector<To>(window.range.end - window.origin, from_double<To>(mark)));
    mix(out.at(0));
    return out.read();
  }
  static bool same_bits(std::span<const To> a, std::span<const To> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }

  /// Each element against long double; all others as they were.
  void check_window(const host_vectors<From>& vectors, const slice& window, const std::vector<double>& weights) const {
    const auto n = vectors.size();
    const placed_vectors<From, Space> at(space_, vectors, window);
    const auto out = mixed(at, window, weights);
    std::vector<bool> is_mixed(out.size(), false);
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (auto x = window.local(k).begin; x < window.local(k).end; ++x) {
        is_mixed[x] = true;
        check_element(vectors, std::span(weights).subspan(k * n, n), window.origin + x, out[x]);
      }
    for (std::size_t x = 0; x < out.size(); ++x)
      if (!is_mixed[x] && to_double(out[x]) != mark)
        refuse(joined({"it writes to an element outside the window (", sample_windows::describe(window), ")"}));
    if constexpr (!InDouble && own_round_bytes<Space> != 0) {
      if (n > 2) return;
      const auto as_pair = written_by(
          window, [&](To* to) { own_pairs<Space>::mix(space_, window, at.all(), weights.data(), to, 0); });
      if (!same_bits(as_pair, out)) refuse("the kernels for pairs have other results");
    }
  }
  void check_whole(const host_vectors<From>& vectors, const std::vector<double>& weights) const {
    const segments cut{vectors.front().size()};
    check_window(vectors, whole(cut), weights);
  }

  /// A product and a sum for each of n vectors are off by (n + 1)·2⁻⁵³ of Σ|wᵢ||vᵢ| in double, to first order and in any order;
  /// n·2⁻⁵⁰ is at least four times that, and n·2⁻²¹ for sums in float. Then the sum is rounded to To: once, or twice where To
  /// has 16 bits. Where To is double, nothing more is rounded.
  void check_element(const host_vectors<From>& vectors, std::span<const double> weights, std::size_t x,
                     To element) const {
    const auto n = vectors.size();
    long double sum = 0, mass = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto term = static_cast<long double>(weights[i]) * to_double(vectors[i][x]);
      sum += term;
      mass += std::abs(term);
    }
    auto allowed = static_cast<long double>(n) * (InDouble || to_doubles ? 0x1p-50L : 0x1p-21L) * mass;
    if (!to_doubles)
      allowed += 2 * static_cast<long double>(unit_roundoff(format_of<To>)) * std::abs(sum) + smallest_of<To>();
    const double found = to_double(element);
    if (!(std::abs(found - sum) <= allowed))
      refuse(joined({"an element is ", found, " instead of ", static_cast<double>(sum), " (", counted(n, "vector"),
                     ")"}));
  }

  /// Vectors from one end of From's range to the other, with weights that bring their terms back to ordinary numbers of To. So
  /// no T may hold the weights, and in double, neither may be rounded to anything narrower.
  void check_range_of_weights(std::size_t n) const {
    constexpr auto from = format_of<From>;
    constexpr int farthest = from == number_format::binary64 ? 900 : from == number_format::binary16 ? 5 : 110;
    constexpr int of_terms = to_doubles ? 60 : format_of<To> == number_format::binary16 ? 3 : 30;
    const int exponents[] = {-farthest, farthest, 0};
    for (const int term : {-of_terms, of_terms})
      for (std::size_t shift = 0; shift < 3; ++shift) {
        auto vectors = sample_vectors<From>(n, 75, 17);
        auto weights = sample_weights(n);
        for (std::size_t i = 0; i < n; ++i) {
          const int exponent = exponents[(i + shift) % 3];
          for (From& x : vectors[i]) x = from_double<From>(std::ldexp(to_double(x), exponent));
          weights[i] = std::ldexp(weights[i], term - exponent);
        }
        check_whole(vectors, weights);
      }
  }

  /// The first term and the last, which is minus the first (but for one vector, of two), are 2³⁰ times as large as what is
  /// left: floats keep none of it, and doubles more digits than a narrower To has.
  void check_cancelling(std::size_t n) const {
    auto vectors = sample_vectors<From>(n, 75, 19);
    vectors.back() = vectors.front();
    auto weights = sample_weights(n);
    weights.front() = 0x1p30;
    weights.back() = (n == 2 ? 1 : 0) - 0x1p30;
    check_whole(vectors, weights);
  }

  /// One vector of NaN, in the second segment.
  void check_weight_zero(std::size_t n) const {
    const segments cut{30, 50};
    for (std::size_t absent = 0; absent < n; ++absent) {
      auto vectors = sample_vectors<From>(n, cut.total(), 11);
      std::ranges::fill(std::span(vectors[absent]).subspan(30),
                        from_double<From>(std::numeric_limits<double>::quiet_NaN()));
      auto weights = sample_weights(2 * n);
      weights[n + absent] = 0;
      const auto out = mixed({space_, vectors, whole(cut)}, whole(cut), weights);
      if (std::ranges::any_of(out, [](To x) { return is_nan(to_double(x)); }))
        refuse(joined({"NaN in a vector of weight 0 reaches the result (", counted(n, "vector"), ")"}));
    }
  }

  /// Ranks hold the same values at different addresses, and mix() may write where one of the vectors is.
  void check_places(std::size_t n) const {
    for (const std::size_t length : {203u, 1203u}) {
      const auto vectors = sample_vectors<From>(n, length, 5);
      const segments cut{length / 3, length - length / 3};
      const auto window = whole(cut);
      const auto weights = sample_weights(2 * n);
      const auto expected = mixed({space_, vectors, window}, window, weights);
      for (std::size_t padding = 0; padding <= 9; ++padding)
        for (const std::size_t step : {0u, 1u})
          if (!same_bits(mixed({space_, vectors, window, padding, step}, window, weights), expected))
            refuse(joined({"the same vectors at other addresses give other bits (", counted(n, "vector"), ")"}));
      if constexpr (!InDouble)
        for (std::size_t i = 0; i < n; ++i) {
          placed_vectors<From, Space> inputs(space_, vectors, window);
          space_.mix(window, inputs.all(), weights.data(), inputs.at(i));
          if (!same_bits(inputs.array(i).read(), expected))
            refuse(joined({"the result differs where it is written to vector ", i, " of ", n}));
        }
    }
  }

  const Space& space_;
};

}  // namespace adasum::detail
