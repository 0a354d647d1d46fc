// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include "elements.hpp"
#include "lanes.hpp"
#include "prefetch.hpp"

/// The mix kernels: out = Σ wᵢ vᵢ over one contiguous piece. `out` may be one of the vectors.
/// `from_memory`: see come_from_memory.
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
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t length, bool from_memory,
                                         const double* weights, T* out) {
    const double first = weights[0], last = weights[N - 1];
    const bool exact = trailing(first) == 0 && trailing(last) == 0;
    if (std::is_same_v<T, float> && !exact)
      run_over<Bytes, std::is_same_v<T, float>>(vectors[0], vectors[N - 1], length, from_memory, first, last, out);
    else
      run_over<Bytes, false>(vectors[0], vectors[N - 1], length, from_memory, first, last, out);
  }

 private:
  /// What a lane's type leaves of a weight; 0 where the weight is not finite.
  static L trailing(double weight) {
    const auto leading = static_cast<L>(weight);
    return leading - leading == 0 ? static_cast<L>(weight - static_cast<double>(leading)) : L{0};
  }

  template <std::size_t Bytes, bool Trailing>
  [[gnu::always_inline]] static void run_over(const T* a, const T* b, std::size_t length, bool from_memory,
                                              double first, double last, T* out) {
    constexpr std::size_t step = Bytes / sizeof(L);
    const std::size_t distance = prefetch_distance<T>(N, from_memory);
    // From a boundary on: where registers that are written span two cache lines each, that takes up to twice the time.
    if (const auto head = elements_to_boundary<step * sizeof(T)>(out); head != 0 && length >= 16 * step) {
      combine_fewer<Bytes, Trailing>(a, b, head, first, last, out);
      a += head;
      b += head;
      out += head;
      length -= head;
    }
    std::size_t x = 0;
    run_asking(length, distance, [&](std::size_t end, auto ask) __attribute__((always_inline)) {
      for (; x + 2 * step <= end; x += 2 * step) {
        if constexpr (ask) {
          prefetch<2 * step * sizeof(T)>(a + x + distance);
          if constexpr (N == 2) prefetch<2 * step * sizeof(T)>(b + x + distance);
        }
        vector<L, Bytes> one, two;
        combine<Bytes, Trailing>(one, first, last, a + x, b + x);
        combine<Bytes, Trailing>(two, first, last, a + x + step, b + x + step);
        store<Bytes>(out + x, one);
        store<Bytes>(out + x + step, two);
      }
    });
    vector<L, Bytes> sum;
    if (x + step <= length) {
      combine<Bytes, Trailing>(sum, first, last, a + x, b + x);
      store<Bytes>(out + x, sum);
      x += step;
    }
    if (x < length) combine_fewer<Bytes, Trailing>(a + x, b + x, length - x, first, last, out + x);
  }

  /// Fewer elements than there are lanes.
  template <std::size_t Bytes, bool Trailing>
  [[gnu::always_inline]] static void combine_fewer(const T* a, const T* b, std::size_t count, double first, double last,
                                                   T* out) {
    constexpr std::size_t room = Bytes / sizeof(L) * sizeof(T);
    alignas(T) unsigned char left[room] = {}, right[room] = {};
    copy_fewer<room, sizeof(T)>(left, a, count * sizeof(T));
    copy_fewer<room, sizeof(T)>(right, b, count * sizeof(T));
    vector<L, Bytes> sum;
    combine<Bytes, Trailing>(sum, first, last, reinterpret_cast<const T*>(left), reinterpret_cast<const T*>(right));
    store<Bytes>(reinterpret_cast<T*>(left), sum);
    copy_fewer<room, sizeof(T)>(out, left, count * sizeof(T));
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
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t n, std::size_t length, bool from_memory,
                                         const double* weights, T* out) {
    constexpr std::size_t width = weighted_lanes<Bytes, T>::width;
    const std::size_t distance = prefetch_distance<T>(n, from_memory);
    std::size_t x = 0;
    run_asking(length, distance, [&](std::size_t end, auto ask) __attribute__((always_inline)) {
      for (; x + width <= end; x += width) {
        weighted_lanes<Bytes, T> sum;
        for (std::size_t i = 0; i < n; ++i) {
          if constexpr (ask) prefetch<width * sizeof(T)>(vectors[i] + x + distance);
          sum.add(weights[i], vectors[i] + x);
        }
        sum.store_to(out + x);
      }
    });
    if (x < length) {
      weighted_lanes<Bytes, T> sum;
      alignas(T) unsigned char rest[width * sizeof(T)] = {};
      for (std::size_t i = 0; i < n; ++i) {
        copy_fewer<sizeof(rest), sizeof(T)>(rest, vectors[i] + x, (length - x) * sizeof(T));
        sum.add(weights[i], reinterpret_cast<const T*>(rest));
      }
      sum.store_to(reinterpret_cast<T*>(rest));
      copy_fewer<sizeof(rest), sizeof(T)>(out + x, rest, (length - x) * sizeof(T));
    }
  }
};

}  // namespace adasum::serial
