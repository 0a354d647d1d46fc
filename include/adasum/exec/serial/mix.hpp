// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include "simd.hpp"

/// The mix kernels: out = Σ wᵢ vᵢ over one contiguous piece. `out` may be one of the vectors.
namespace adasum::serial {

/// One or two vectors, in the lanes of compute_type<T>.
///
/// Where float elements have weights that no float can hold, each weight multiplies in two parts, its leading and its
/// trailing 24 bits, so that it keeps 48 bits and the sum is rounded little more than once. (Infinite elements can then
/// become NaN.) 16-bit elements are rounded so much more coarsely that the leading part does.
template <std::size_t N, scalar T>
struct mix_few {
  using L = compute_type<T>;

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t length, const double* weights, T* out) {
    const double first = weights[0], last = weights[N - 1];
    const bool exact = trailing(first) == 0 && trailing(last) == 0;
    if (std::is_same_v<T, float> && !exact)
      run_over<Bytes, std::is_same_v<T, float>>(vectors[0], vectors[N - 1], length, first, last, out);
    else
      run_over<Bytes, false>(vectors[0], vectors[N - 1], length, first, last, out);
  }

 private:
  /// What a lane's type leaves of a weight; 0 where the weight is not finite.
  static L trailing(double weight) {
    const auto leading = static_cast<L>(weight);
    return leading - leading == 0 ? static_cast<L>(weight - static_cast<double>(leading)) : L{0};
  }

  template <std::size_t Bytes, bool Trailing>
  [[gnu::always_inline]] static void run_over(const T* a, const T* b, std::size_t length, double first, double last,
                                              T* out) {
    constexpr std::size_t step = Bytes / sizeof(L);
    std::size_t x = 0;
    for (; x + 2 * step <= length; x += 2 * step) {
      vector<L, Bytes> one, two;
      combine<Bytes, Trailing>(one, first, last, a + x, b + x);
      combine<Bytes, Trailing>(two, first, last, a + x + step, b + x + step);
      store<Bytes>(out + x, one);
      store<Bytes>(out + x + step, two);
    }
    for (; x < length; x += step) {
      const std::size_t count = length - x < step ? length - x : step;
      alignas(T) unsigned char left[step * sizeof(T)] = {}, right[step * sizeof(T)] = {};
      __builtin_memcpy(left, a + x, count * sizeof(T));
      __builtin_memcpy(right, b + x, count * sizeof(T));
      vector<L, Bytes> sum;
      combine<Bytes, Trailing>(sum, first, last, reinterpret_cast<const T*>(left), reinterpret_cast<const T*>(right));
      store<Bytes>(reinterpret_cast<T*>(left), sum);
      __builtin_memcpy(static_cast<void*>(out + x), left, count * sizeof(T));
    }
  }

  template <std::size_t Bytes, bool Trailing>
  [[gnu::always_inline]] static void combine(vector<L, Bytes>& sum, double first, double last, const T* a, const T* b) {
    vector<L, Bytes> left, right;
    load<Bytes>(left, a);
    sum = static_cast<L>(first) * left;
    if constexpr (N == 1) {
      if constexpr (Trailing) sum += trailing(first) * left;
    } else {
      load<Bytes>(right, b);
      if constexpr (Trailing)
        sum += static_cast<L>(last) * right + (trailing(first) * left + trailing(last) * right);
      else
        sum += static_cast<L>(last) * right;
    }
  }
};

/// Any number of vectors, added in double lanes and rounded once.
template <scalar T>
struct mix_many {
  /// Many streams, read in turns, are more than the processor foresees: ask for elements so far ahead (2 KiB of float).
  static constexpr std::size_t ahead = 512;

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t n, std::size_t length,
                                         const double* weights, T* out) {
    constexpr std::size_t step = Bytes / sizeof(compute_type<T>);
    std::size_t x = 0;
    for (; x + step <= length; x += step) {
      vector<compute_type<T>, Bytes> result;
      sum<Bytes>(result, vectors, n, x, step, weights);
      store<Bytes>(out + x, result);
    }
    if (x < length) {
      vector<compute_type<T>, Bytes> result;
      sum<Bytes>(result, vectors, n, x, length - x, weights);
      alignas(T) unsigned char rest[step * sizeof(T)];
      store<Bytes>(reinterpret_cast<T*>(rest), result);
      __builtin_memcpy(static_cast<void*>(out + x), rest, (length - x) * sizeof(T));
    }
  }

  /// Σ wᵢ vᵢ of `count` elements from x on.
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void sum(vector<compute_type<T>, Bytes>& result, const T* const* vectors, std::size_t n,
                                         std::size_t x, std::size_t count, const double* weights) {
    constexpr std::size_t step = Bytes / sizeof(compute_type<T>);
    vector<double, Bytes> low_sum = {}, high_sum = {};
    for (std::size_t i = 0; i < n; ++i) {
      vector<compute_type<T>, Bytes> value;
      if (count == step) {
        __builtin_prefetch(vectors[i] + x + ahead);
        load<Bytes>(value, vectors[i] + x);
      } else {
        alignas(T) unsigned char rest[step * sizeof(T)] = {};
        __builtin_memcpy(rest, vectors[i] + x, count * sizeof(T));
        load<Bytes>(value, reinterpret_cast<const T*>(rest));
      }
      if constexpr (std::is_same_v<compute_type<T>, double>) {
        low_sum += weights[i] * value;
      } else {
        vector<double, Bytes> low, high;
        widen<Bytes>(low, high, value);
        low_sum += weights[i] * low;
        high_sum += weights[i] * high;
      }
    }
    if constexpr (std::is_same_v<compute_type<T>, double>) {
      result = low_sum;
    } else {
      const auto low = __builtin_convertvector(low_sum, vector<float, Bytes / 2>);
      const auto high = __builtin_convertvector(high_sum, vector<float, Bytes / 2>);
      __builtin_memcpy(&result, &low, Bytes / 2);
      __builtin_memcpy(reinterpret_cast<char*>(&result) + Bytes / 2, &high, Bytes / 2);
    }
  }
};

}  // namespace adasum::serial
