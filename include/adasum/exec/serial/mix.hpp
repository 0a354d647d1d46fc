// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include "simd.hpp"

/// The mix kernels: out = Σ wᵢ vᵢ over one contiguous piece. `out` may be one of the vectors.
namespace adasum::serial {

/// A double weight as it multiplies lanes of type L. A float lane multiplies by the weight's leading and trailing 24
/// bits in turn, so that the weight keeps 48 bits and the sum is rounded little more than once.
template <std::size_t Bytes, class L>
struct lane_weight {
  vector<L, Bytes> high, low;

  [[gnu::always_inline]] explicit lane_weight(double weight) {
    const L leading = static_cast<L>(weight);
    const bool finite = leading - leading == 0;
    high = vector<L, Bytes>{} + leading;
    low = vector<L, Bytes>{} + (finite ? static_cast<L>(weight - static_cast<double>(leading)) : L{0});
  }
};

/// One or two vectors, in the lanes of compute_type<T>; double weights of double elements have no trailing part.
template <std::size_t N, scalar T>
struct mix_few {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t length, const double* weights, T* out) {
    using L = compute_type<T>;
    constexpr std::size_t step = Bytes / sizeof(L);
    const lane_weight<Bytes, L> first(weights[0]), last(weights[N - 1]);
    const T *a = vectors[0], *b = vectors[N - 1];
    std::size_t x = 0;
    for (; x + 2 * step <= length; x += 2 * step) {
      vector<L, Bytes> one, two;
      combine<Bytes>(one, first, last, a + x, b + x);
      combine<Bytes>(two, first, last, a + x + step, b + x + step);
      store<Bytes>(out + x, one);
      store<Bytes>(out + x + step, two);
    }
    for (; x < length; x += step) {
      const std::size_t count = length - x < step ? length - x : step;
      alignas(T) unsigned char left[step * sizeof(T)] = {}, right[step * sizeof(T)] = {};
      __builtin_memcpy(left, a + x, count * sizeof(T));
      __builtin_memcpy(right, b + x, count * sizeof(T));
      vector<L, Bytes> sum;
      combine<Bytes>(sum, first, last, reinterpret_cast<const T*>(left), reinterpret_cast<const T*>(right));
      store<Bytes>(reinterpret_cast<T*>(left), sum);
      __builtin_memcpy(static_cast<void*>(out + x), left, count * sizeof(T));
    }
  }

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void combine(vector<compute_type<T>, Bytes>& sum,
                                             const lane_weight<Bytes, compute_type<T>>& first,
                                             const lane_weight<Bytes, compute_type<T>>& last, const T* a, const T* b) {
    vector<compute_type<T>, Bytes> left;
    load<Bytes>(left, a);
    if constexpr (N == 1) {
      sum = first.high * left;
      if constexpr (std::is_same_v<compute_type<T>, float>) sum += first.low * left;
    } else {
      vector<compute_type<T>, Bytes> right;
      load<Bytes>(right, b);
      if constexpr (std::is_same_v<compute_type<T>, float>) {
        const vector<float, Bytes> trailing = first.low * left + last.low * right;
        sum = first.high * left + (last.high * right + trailing);
      } else {
        sum = first.high * left + last.high * right;
      }
    }
  }
};

/// Any number of vectors, added in double lanes and rounded once.
template <scalar T>
struct mix_many {
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
