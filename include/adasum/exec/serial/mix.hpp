// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "../../core/scalar.hpp"
#include "blocks.hpp"
#include "elements.hpp"
#include "instruction_set.hpp"
#include "lanes.hpp"

/// The mix kernels: out = Σ wᵢ vᵢ over one contiguous piece. `out` may be one of the vectors.
/// `from_memory`: see exceeds_cache.
namespace adasum::detail::serial {

/// Any number of vectors of T, added in double lanes and rounded to Out at the end (if that has 16 bits, by way of float).
template <scalar T, scalar Out = T>
struct mix_many {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* untyped, std::size_t n, std::size_t length,
                                         bool from_memory, const double* weights, void* result) {
    const auto* const vectors = reinterpret_cast<const T* const*>(untyped);
    auto* const out = static_cast<Out*>(result);
    using lanes = weighted_lanes<Bytes, T>;
    std::size_t x = 0;
    if (from_memory && n > 2 * streams) {
      x = length / lanes::width * lanes::width;
      mix_in_blocks<Bytes>(vectors, n, x, weights, out);
    } else {
      const std::size_t distance = prefetch_distance<Bytes, T>(from_memory);
      run_asking(length, distance, [&](std::size_t end, auto ask) __attribute__((always_inline)) {
        for (; x + lanes::width <= end; x += lanes::width) {
          lanes sum;
          add<ask>(sum, vectors, weights, 0, n, x, distance);
          sum.store_to(out + x);
        }
      });
    }
    if (x < length) {
      lanes sum;
      alignas(T) unsigned char rest[lanes::width * sizeof(T)] = {};
      for (std::size_t i = 0; i < n; ++i) {
        copy_fewer<sizeof(rest), sizeof(T)>(rest, vectors[i] + x, (length - x) * sizeof(T));
        sum.add(weights[i], reinterpret_cast<const T*>(rest));
      }
      alignas(Out) unsigned char rounded[lanes::width * sizeof(Out)];
      sum.store_to(reinterpret_cast<Out*>(rounded));
      copy_fewer<sizeof(rounded), sizeof(Out)>(out + x, rounded, (length - x) * sizeof(Out));
    }
  }

 private:
  /// Vectors from memory that are read in turns. Of more, the lines that have been asked for ahead, which often lie alike
  /// within their pages, do not fit into the same places of the first cache.
  static constexpr std::size_t streams = 8;
  /// Elements whose sums stay in the first cache while those vectors are added to them, and then others.
  static constexpr std::size_t block = 2048;

  /// Adds what the vectors [first, last) have from x on.
  /// @param ahead  how many elements further on the next ones are asked for
  template <bool Ask, class Lanes>
  [[gnu::always_inline]] static void add(Lanes& sum, const T* const* vectors, const double* weights, std::size_t first,
                                         std::size_t last, std::size_t x, std::size_t ahead) {
    for (std::size_t i = first; i < last; ++i) {
      if constexpr (Ask) prefetch<Lanes::width * sizeof(T)>(vectors[i] + x + ahead);
      sum.add(weights[i], vectors[i] + x);
    }
  }

  /// The same sums in the same order. @pre length is a multiple of the lanes' width
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void mix_in_blocks(const T* const* vectors, std::size_t n, std::size_t length,
                                                   const double* weights, Out* out) {
    using lanes = weighted_lanes<Bytes, T>;
    const std::size_t distance = prefetch_distance<Bytes, T>(true);
    alignas(64) double sums[block];
    for (std::size_t x = 0; x < length; x += block) {
      const std::size_t count = std::min(block, length - x);
      const bool ask = length - x >= count + distance;
      for (std::size_t first = 0; first < n; first += streams) {
        const std::size_t last = std::min(n, first + streams);
        for (std::size_t y = 0; y < count; y += lanes::width) {
          lanes sum;
          if (first != 0) __builtin_memcpy(&sum.sums, sums + y, sizeof(sum.sums));
          if (ask)
            add<true>(sum, vectors, weights, first, last, x + y, distance);
          else
            add<false>(sum, vectors, weights, first, last, x + y, 0);
          if (last == n)
            sum.store_to(out + x + y);
          else
            __builtin_memcpy(sums + y, &sum.sums, sizeof(sum.sums));
        }
      }
    }
  }
};

/// Weights between these bounds lose nothing in float lanes: a float holds the leading part, and where there is one the
/// trailing part, without becoming infinite or subnormal.
inline constexpr double smallest_float_weight = 0x1p-102;
inline constexpr double largest_float_weight = 0x1.fffffep+127;
/// Not for NaN.
constexpr bool fits_float_lanes(double weight) {
  const auto bits = detail::magnitude_bits(weight);
  return bits >= detail::magnitude_bits(smallest_float_weight) && bits <= detail::magnitude_bits(largest_float_weight);
}

/// One or two vectors, in the lanes of compute_type<T>.
///
/// Where float elements have weights that no float can hold, each weight multiplies in two parts, its leading and its
/// trailing 24 bits, so that it keeps 48 bits and the sum is rounded little more than once. (Infinite elements can then
/// become NaN.) 16-bit elements are rounded so much more coarsely that the leading part does.
///
/// Weights that leave the range of float lanes belong to vectors that are far shorter or far longer than the result:
/// these are mixed in double lanes. (So are the floats of short segments, by short_segments.hpp: as biases do, they often
/// cancel.)
///
/// What becomes of an element depends on its segment, but not on its place there, nor on how many are mixed at once: it is
/// the same however gradients are cut into slices.
template <std::size_t Count, scalar T>
struct mix_few {
  using L = compute_type<T>;

  /// @param past_caches  whether the result bypasses the caches, where it can
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* vectors, std::size_t length, bool from_memory,
                                         bool past_caches, const double* weights, void* out) {
    const double first = weights[0], last = weights[Count - 1];
    if constexpr (std::is_same_v<L, float>)
      if (!fits_float_lanes(first) || !fits_float_lanes(last))
        return run_apart<Bytes, mix_many<T>>(vectors, Count, length, from_memory, weights, out);
    const bool exact = trailing(first) == 0 && trailing(last) == 0;
    if (std::is_same_v<T, float> && !exact)
      run_over<Bytes, std::is_same_v<T, float>>(vectors, length, from_memory, past_caches, first, last, out);
    else
      run_over<Bytes, false>(vectors, length, from_memory, past_caches, first, last, out);
  }

 private:
  /// What a lane's type leaves of a weight; 0 where the weight is not finite.
  static L trailing(double weight) {
    const auto leading = static_cast<L>(weight);
    return detail::is_finite(leading) ? static_cast<L>(weight - static_cast<double>(leading)) : L{0};
  }

  /// first · a + last · b.
  template <std::size_t Bytes, bool Trailing>
  class combination {
   public:
    static constexpr std::size_t step = Bytes / sizeof(L);

    [[gnu::always_inline]] combination(double first, double last) {
      broadcast(first_, static_cast<L>(first));
      broadcast(last_, static_cast<L>(last));
      if constexpr (Trailing) broadcast(first_trailing_, trailing(first));
      if constexpr (Trailing) broadcast(last_trailing_, trailing(last));
    }

    /// Of `step` elements.
    [[gnu::always_inline]] void add_up(vector<L, Bytes>& sum, const T* a, const T* b) const {
      vector<L, Bytes> left, right;
      load<Bytes>(left, a);
      if constexpr (Count == 2) load<Bytes>(right, b);
      // The least first.
      sum = (Trailing ? first_trailing_ : first_) * left;
      if constexpr (Trailing && Count == 2) add_product<L, Bytes>(sum, last_trailing_, right);
      if constexpr (Count == 2) add_product<L, Bytes>(sum, last_, right);
      if constexpr (Trailing) add_product<L, Bytes>(sum, first_, left);
    }
    template <bool PastCaches = false>
    [[gnu::always_inline]] void write(const T* a, const T* b, T* out) const {
      vector<L, Bytes> sum;
      add_up(sum, a, b);
      if constexpr (PastCaches)
        store_past_caches<Bytes>(out, sum);
      else
        store<Bytes>(out, sum);
    }
    /// `count` elements, fewer than `step`.
    [[gnu::always_inline]] void write_fewer(const T* a, const T* b, std::size_t count, T* out) const {
      constexpr std::size_t capacity = step * sizeof(T);
      alignas(T) unsigned char left[capacity] = {}, right[capacity] = {};
      copy_fewer<capacity, sizeof(T)>(left, a, count * sizeof(T));
      copy_fewer<capacity, sizeof(T)>(right, b, count * sizeof(T));
      write(reinterpret_cast<const T*>(left), reinterpret_cast<const T*>(right), reinterpret_cast<T*>(left));
      copy_fewer<capacity, sizeof(T)>(out, left, count * sizeof(T));
    }
    /// Otherwise, GCC 12 keeps them in memory.
    [[gnu::always_inline]] void keep_in_registers() {
      keep_in_register(first_);
      keep_in_register(last_);
      if constexpr (Trailing) keep_in_register(first_trailing_);
      if constexpr (Trailing) keep_in_register(last_trailing_);
    }

   private:
    vector<L, Bytes> first_, last_, first_trailing_, last_trailing_;
  };

  template <std::size_t Bytes, bool Trailing>
  [[gnu::always_inline]] static void run_over(const void* const* vectors, std::size_t length, bool from_memory,
                                              bool past_caches, double first, double last, void* result) {
    const T *a = static_cast<const T*>(vectors[0]), *b = static_cast<const T*>(vectors[Count - 1]);
    T* out = static_cast<T*>(result);
    combination<Bytes, Trailing> both(first, last);
    both.keep_in_registers();
    constexpr std::size_t step = both.step;
    if (length < step) return both.write_fewer(a, b, length, out);
    // The first and the last elements, which fill no register between boundaries: before anything is written to a or b.
    vector<L, Bytes> begin, end;
    both.add_up(begin, a, b);
    both.add_up(end, a + (length - step), b + (length - step));
    // From a boundary on: where registers that are written span two cache lines each, that takes up to twice the time.
    const bool from_boundary = Bytes >= 32 && length >= 16 * step;
    std::size_t x = from_boundary ? elements_to_boundary<step * sizeof(T)>(out) : 0;
    const std::size_t distance = prefetch_distance<Bytes, T>(from_memory);
    const auto write_until = [&](std::size_t limit, auto ask, auto past) __attribute__((always_inline)) {
      for (std::size_t times = limit < x ? 0 : (limit - x) / (2 * step); times > 0; --times, x += 2 * step) {
        if constexpr (ask) {
          prefetch<2 * step * sizeof(T)>(a + x + distance);
          if constexpr (Count == 2) prefetch<2 * step * sizeof(T)>(b + x + distance);
        }
        both.template write<past>(a + x, b + x, out + x);
        both.template write<past>(a + x + step, b + x + step, out + x + step);
      }
    };
    if constexpr (Bytes >= 32 && stores_bypass_caches)
      if (past_caches && from_boundary) write_until(length, std::true_type{}, std::true_type{});
    run_asking(length, distance, [&](std::size_t limit, auto ask) __attribute__((always_inline)) {
      write_until(limit, ask, std::false_type{});
    });
    if (x + step <= length) both.write(a + x, b + x, out + x);
    store<Bytes>(out, begin);
    store<Bytes>(out + (length - step), end);
  }
};

}  // namespace adasum::detail::serial
