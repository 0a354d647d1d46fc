// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/gram.hpp"
#include "../core/scalar.hpp"
#include "../core/segments.hpp"
#include "../core/space_members.hpp"
#include "space_samples.hpp"

namespace adasum::detail {

/// The part of check_execution_space that looks at measure(), or at measure_in_double(): the same contract, but for its
/// accuracy.
template <scalar T, class Space, bool InDouble = false>
class measure_check {
 public:
  explicit measure_check(const Space& space) : space_(space) {}

  void run() const {
    const sample_windows windows;
    for (const std::size_t n : {1u, 2u, 3u, 5u, 9u}) {
      const auto vectors = sample_vectors<T>(n, windows.length());
      for (const auto& window : windows.all()) check_window(vectors, window);
    }
    check_no_drift();
    check_small_and_large();
    check_places();
    check_copies();
  }

 private:
  using gram_list = std::vector<double>;

  [[noreturn]] void refuse(const std::string& what) const {
    refuse_space(space_.name, (InDouble ? "measure_in_double: " : "measure: ") + what);
  }

  static gram_list measured_by(const Space& space, const placed_vectors<T, Space>& at, const slice& window) {
    return written_by(space, at, window, [&](double* gram) {
      if constexpr (InDouble)
        space.measure_in_double(window, at.all(), gram);
      else
        space.measure(window, at.all(), gram);
    });
  }
  /// Gram matrices, and a number behind them.
  template <class Measure>
  static gram_list written_by(const Space& space, const placed_vectors<T, Space>& at, const slice& window,
                              const Measure& measure) {
    gram_list gram(window.segments.size() * packed_size(at.all().size()) + 1, 1e99);
    measure(gram.data());
    space.fence();
    return gram;
  }
  static bool same_bits(const gram_list& a, const gram_list& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  }

  /// Each entry against long double.
  void check_window(const host_vectors<T>& vectors, const slice& window) const {
    const auto n = vectors.size();
    const placed_vectors<T, Space> at(space_, vectors, window);
    const auto gram = measured_by(space_, at, window);
    if (gram.back() != 1e99) refuse("it writes past the last Gram matrix");
    check_values(vectors, window, gram, "");
    if constexpr (!InDouble && own_round_bytes<Space> != 0) {
      const auto told = written_by(space_, at, window, [&](double* to) {
        measure_round(space_, window, at.all(), to, std::size_t{1} << 30);
      });
      check_values(vectors, window, told, ", told that they are part of more");
      if (n > 2) return;
      const auto as_pair = written_by(space_, at, window, [&](double* to) {
        own_pairs<Space>::measure(space_, window, at.all(), to, 0);
      });
      if (!same_bits(as_pair, gram)) refuse("the kernels for pairs have other results");
    }
  }

  void check_values(const host_vectors<T>& vectors, const slice& window, const gram_list& gram,
                    const std::string& how) const {
    // Doubles may be added one after the other. What measure promises for narrower elements is "better than float": 2⁸
    // roundings of float are far from a drifting sum.
    const long double accuracy = InDouble || format_of<T> == number_format::binary64
                                     ? static_cast<long double>(window.range.size() + 16) * 0x1p-52L
                                     : 0x1p-16L;
    const auto n = vectors.size();
    for (std::size_t k = 0; k < window.segments.size(); ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
          long double sum = 0, mass = 0;
          const auto local = window.local(k);
          for (auto x = window.origin + local.begin; x < window.origin + local.end; ++x) {
            const auto product = static_cast<long double>(to_double(vectors[i][x])) * to_double(vectors[j][x]);
            sum += product;
            mass += std::abs(product);
          }
          const double found = gram[k * packed_size(n) + packed_index(i, j)];
          if (!(std::abs(found - sum) <= accuracy * mass))
            refuse(joined({"entry (", i, ", ", j, ") of segment ", k, " is ", found, " instead of ",
                           static_cast<double>(sum), how, " (", counted(n, "vector"), "; ",
                           sample_windows::describe(window), ")"}));
        }
  }

  /// Squares of equal numbers round alike, so a long sum in float drifts away.
  void check_no_drift() const {
    constexpr std::size_t length = std::size_t{1} << 16;
    const segments cut{length};
    for (const std::size_t n : {1u, 2u, 3u})
      check_window(host_vectors<T>(n, std::vector<T>(length, from_double<T>(0.7))), whole(cut));
  }

  gram_list of_two(T first, T others) const {
    host_vectors<T> vectors(2, std::vector<T>(100, others));
    vectors[0][63] = first;
    const segments cut{100};
    return measured_by(space_, {space_, vectors, whole(cut)}, whole(cut));
  }
  void check_small_and_large() const {
    const auto tiny = of_two(from_double<T>(smallest_of<T>()), from_double<T>(-0.0));
    if (!(tiny[0] > 0)) refuse("the square of a vector that is not zero is zero: it underflows");
    if (!is_zero(tiny[2])) refuse("the square of a zero vector is not zero");
    for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
      if (is_finite(of_two(from_double<T>(value), from_double<T>(0))[0]))
        refuse("the square of a vector that holds Inf or NaN is finite");
  }

  /// Ranks hold the same values at different addresses, and must compute the same.
  void check_places() const {
    for (const std::size_t length : {203u, 1203u, 9001u})
      for (const std::size_t n : {1u, 2u, 3u}) {
        const auto vectors = sample_vectors<T>(n, length, 7);
        const segments cut{length};
        const auto expected = measured_by(space_, {space_, vectors, whole(cut)}, whole(cut));
        for (std::size_t padding = 1; padding <= 9; ++padding)
          for (const std::size_t step : {0u, 1u}) {
            const auto moved = measured_by(space_, {space_, vectors, whole(cut), padding, step}, whole(cut));
            if (!same_bits(moved, expected))
              refuse(joined({"the same vectors at other addresses give other bits (", counted(n, "vector"), " of ",
                             length, ")"}));
          }
      }
  }

  void check_copies() const {
    const auto vectors = sample_vectors<T>(3, 500, 9);
    const segments cut{500};
    const placed_vectors<T, Space> at(space_, vectors, whole(cut));
    const Space copy = space_;
    if (!same_bits(measured_by(copy, at, whole(cut)), measured_by(space_, at, whole(cut))))
      refuse("a copy of the space gives other bits");
  }

  const Space& space_;
};

}  // namespace adasum::detail
