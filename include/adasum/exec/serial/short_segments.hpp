// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "blocks.hpp"
#include "elements.hpp"
#include "simd.hpp"

/// The kernels for runs of short segments of floats (at most few_elements each), such as biases and the parameters of
/// normalisation: one call for all of them, since a call for each would take longer than its elements do.
///
/// Everything is multiplied and added in double, in registers that are read whole where the window goes on behind the
/// segment: what they hold of the next segment is masked, or not written. So no element is read outside the window.
namespace adasum::detail::serial {

/// Elements, filled up with zeros or with what lies behind them, that stay within the window.
template <std::size_t Bytes>
class short_piece {
 public:
  static constexpr std::size_t lanes = Bytes / sizeof(double);

  /// @param end  of the window, counted as `begin` is
  [[gnu::always_inline]] short_piece(std::size_t begin, std::size_t length, std::size_t end)
      : begin_(begin), length_(length), end_(end) {}

  [[gnu::always_inline]] std::size_t length() const { return length_; }

  /// `lanes` elements from x on, of which those behind the piece may be anything.
  [[gnu::always_inline]] void load(vector<double, Bytes>& out, const float* elements, std::size_t x) const {
    if (begin_ + x + lanes <= end_) return load_each<double, Bytes>(out, elements + begin_ + x);
    alignas(Bytes) float padded[lanes] = {};
    copy_fewer<sizeof(padded), sizeof(float)>(padded, elements + begin_ + x, (end_ - begin_ - x) * sizeof(float));
    load_each<double, Bytes>(out, static_cast<const float*>(padded));
  }
  /// The same, with zeros behind the piece.
  [[gnu::always_inline]] void load_masked(vector<double, Bytes>& out, const float* elements, std::size_t x) const {
    load(out, elements, x);
    if (length_ - x >= lanes) return;
    lane_mask<double, Bytes> bits, mask;
    first_lanes<double, Bytes>(mask, length_ - x);
    bit_copy(bits, out);
    bit_copy(out, lane_mask<double, Bytes>(bits & mask));
  }
  /// Writes the elements of the piece among the `lanes` from x on, rounded once.
  [[gnu::always_inline]] void store(float* elements, std::size_t x, const vector<double, Bytes>& value) const {
    const auto rounded = __builtin_convertvector(value, vector<float, Bytes / 2>);
    if (length_ - x >= lanes) return __builtin_memcpy(elements + begin_ + x, &rounded, sizeof(rounded)), void();
    copy_fewer<sizeof(rounded), sizeof(float)>(elements + begin_ + x, &rounded, (length_ - x) * sizeof(float));
  }

 private:
  std::size_t begin_, length_, end_;
};

/// body(r) for each r below Count, without a loop: what is indexed by r then stays in registers.
template <std::size_t Count, class Body>
[[gnu::always_inline]] inline void for_each_register(const Body& body) {
  [&]<std::size_t... R>(std::index_sequence<R...>)
      __attribute__((always_inline)) { (body(R), ...); }(std::make_index_sequence<Count>{});
}

/// run(number of registers) with as many as the piece needs, rounded up to a power of two, as a constant.
template <std::size_t Bytes, std::size_t Most = few_elements * sizeof(double) / Bytes, class Run>
[[gnu::always_inline]] inline void with_registers(const short_piece<Bytes>& piece, Run&& run) {
  if constexpr (Most > 1)
    if (piece.length() <= Most / 2 * short_piece<Bytes>::lanes) return with_registers<Bytes, Most / 2>(piece, run);
  run(std::integral_constant<std::size_t, Most>{});
}

/// visit(k, piece) for the segments in *remaining, as long as they are short, if they have elements in the window. What remains
/// in the end begins with one that is not short.
template <std::size_t Bytes, class Visitor>
[[gnu::always_inline]] inline void for_each_short_piece(const slice& window, index_range* remaining, Visitor&& visit) {
  const auto [begin, end] = window.range;  // and not read again after each store
  const std::size_t origin = window.origin;
  const std::size_t* const offsets = window.segments.offsets().data();
  const std::size_t last = remaining->end;
  std::size_t k = remaining->begin;
  for (; k < last && offsets[k + 1] - offsets[k] <= few_elements; ++k) {
    const auto from = std::max(offsets[k], begin), to = std::min(offsets[k + 1], end);
    if (from < to) visit(k, short_piece<Bytes>(from - origin, to - from, end - origin));
  }
  remaining->begin = k;
}

/// The Gram matrices of two vectors for a run of short segments; of the first alone where `entries` of them is 1, not 3.
struct measure_short_pairs {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* a, const void* b, std::size_t entries, const slice* window,
                                         index_range* remaining, double* gram) {
    const auto measure = [&](std::size_t k, const auto& piece) __attribute__((always_inline)) {
      vector<double, Bytes> sums[packed_size(2)] = {};
      for (std::size_t x = 0; x < piece.length(); x += piece.lanes) {
        vector<double, Bytes> left, right;
        piece.load_masked(left, static_cast<const float*>(a), x);
        piece.load_masked(right, static_cast<const float*>(b), x);
        sums[0] += left * left;
        sums[1] += right * left;
        sums[2] += right * right;
      }
      double* const to = gram + k * entries;
      if (entries == 1) return *to = sum_of_lanes<Bytes>(sums[0]), void();
      vector<double, 16> two;
      sums_of_lanes<Bytes>(two, sums[0], sums[1]);
      __builtin_memcpy(to, &two, sizeof(two));
      to[2] = sum_of_lanes<Bytes>(sums[2]);
    };
    for_each_short_piece<Bytes>(*window, remaining, measure);
  }
};

/// The same of n vectors.
struct measure_short {
  /// @param scratch  n · few_elements
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* untyped, std::size_t n, const slice* window,
                                         index_range* remaining, double* scratch, double* gram) {
    const auto* const vectors = reinterpret_cast<const float* const*>(untyped);
    const auto measure_one = [&](std::size_t k, const auto& piece) __attribute__((always_inline)) {
      with_registers<Bytes>(piece, [&](auto registers) __attribute__((always_inline)) {
        measure_in<Bytes, registers>(vectors, n, piece, scratch, gram + k * packed_size(n));
      });
    };
    for_each_short_piece<Bytes>(*window, remaining, measure_one);
  }

 private:
  template <std::size_t Bytes, std::size_t Registers>
  [[gnu::always_inline]] static void measure_in(const float* const* vectors, std::size_t n,
                                                const short_piece<Bytes>& piece, double* scratch, double* gram) {
    constexpr std::size_t lanes = short_piece<Bytes>::lanes, width = Registers * lanes;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t x = 0; x < width; x += lanes) {
        vector<double, Bytes> value = {};
        if (x < piece.length()) piece.load_masked(value, vectors[i], x);
        __builtin_memcpy(scratch + i * width + x, &value, Bytes);
      }
    for (std::size_t i = 0; i < n; gram += ++i) {
      const double* const row = scratch + i * width;
      std::size_t j = 0;
      for (; j < i; j += 2) {
        vector<double, Bytes> first, second;
        multiply<Bytes, Registers>(first, row, scratch + j * width);
        multiply<Bytes, Registers>(second, row, scratch + (j + 1) * width);
        vector<double, 16> both;
        sums_of_lanes<Bytes>(both, first, second);
        __builtin_memcpy(gram + j, &both, sizeof(both));
      }
      if (j > i) continue;
      vector<double, Bytes> square;
      multiply<Bytes, Registers>(square, row, row);
      gram[i] = sum_of_lanes<Bytes>(square);
    }
  }

  template <std::size_t Bytes, std::size_t Registers>
  [[gnu::always_inline]] static void multiply(vector<double, Bytes>& sum, const double* a, const double* b) {
    for_each_register<Registers>([&](std::size_t r) __attribute__((always_inline)) {
      vector<double, Bytes> left, right;
      __builtin_memcpy(&left, a + r * Bytes / sizeof(double), Bytes);
      __builtin_memcpy(&right, b + r * Bytes / sizeof(double), Bytes);
      sum = r == 0 ? left * right : sum + left * right;
    });
  }
};

/// out = Σ wᵢ vᵢ of n vectors, for a run of short segments. Vectors of weight 0 are left out.
struct mix_short {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* untyped, std::size_t n, const slice* window,
                                         index_range* remaining, const double* weights, void* result) {
    const auto* const vectors = reinterpret_cast<const float* const*>(untyped);
    auto* const out = static_cast<float*>(result);
    const auto mix = [&](std::size_t k, const auto& piece) __attribute__((always_inline)) {
      const double* const w = weights + k * n;
      if (n == 2 && !detail::is_zero(w[0]) && !detail::is_zero(w[1]))
        return mix_two(vectors[0], vectors[1], w[0], w[1], piece, out);
      with_registers<Bytes>(piece, [&](auto registers) __attribute__((always_inline)) {
        mix_in<Bytes, registers>(vectors, n, w, piece, out);
      });
    };
    for_each_short_piece<Bytes>(*window, remaining, mix);
  }

 private:
  template <std::size_t Bytes, std::size_t Registers>
  [[gnu::always_inline]] static void mix_in(const float* const* vectors, std::size_t n, const double* weights,
                                            const short_piece<Bytes>& piece, float* out) {
    constexpr std::size_t lanes = short_piece<Bytes>::lanes;
    vector<double, Bytes> sums[Registers] = {};
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (detail::is_zero(weights[i])) continue;
      vector<double, Bytes> value, weight;
      broadcast(weight, weights[i]);
      for_each_register<Registers>([&](std::size_t r) __attribute__((always_inline)) {
        if (r * lanes >= piece.length()) return;
        piece.load(value, vectors[i], r * lanes);
        if (any)
          add_product<double, Bytes>(sums[r], weight, value);
        else
          sums[r] = weight * value;
      });
      any = true;
    }
    for_each_register<Registers>([&](std::size_t r) __attribute__((always_inline)) {
      if (r * lanes < piece.length()) piece.store(out, r * lanes, sums[r]);
    });
  }

  /// The common case: the same, without loops over vectors.
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void mix_two(const float* a, const float* b, double first, double last,
                                             const short_piece<Bytes>& piece, float* out) {
    vector<double, Bytes> left, right;
    broadcast(left, first);
    broadcast(right, last);
    for (std::size_t x = 0; x < piece.length(); x += piece.lanes) {
      vector<double, Bytes> value, sum;
      piece.load(value, a, x);
      sum = left * value;
      piece.load(value, b, x);
      add_product<double, Bytes>(sum, right, value);
      piece.store(out, x, sum);
    }
  }
};

}  // namespace adasum::detail::serial
