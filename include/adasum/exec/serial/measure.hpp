// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../core/gram.hpp"
#include "simd.hpp"

#ifdef __NVCC__  // its front end does not know `#pragma GCC unroll`; the host's compiler does
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675
#endif

/// The measure kernels: the Gram matrix of n vectors over one contiguous piece, added to what is there.
///
/// One or two vectors of at most 32 bits per element are multiplied and added in float lanes, emptied into a double
/// after at most chain_length additions each: |error of gᵢ·gⱼ| <= (chain_length + 1)·2⁻²⁴ · Σ|gᵢ||gⱼ|, that is 3.9e-6 at
/// worst (signs and magnitudes of rounding errors average out; 1e-8 is usual). Everything else uses double lanes: there
/// products of floats are exact, and |error| <= (length / lanes + lanes)·2⁻⁵³ · Σ|gᵢ||gⱼ|.
/// No result depends on where the vectors lie in memory.
namespace adasum::serial {

/// Additions into one float lane before it is emptied into a double.
inline constexpr std::size_t chain_length = 64;
/// Independent accumulators per inner product, so that an addition need not wait for the one before.
inline constexpr std::size_t chains = 4;

/// A block whose sums of squares lie outside these bounds is done again in double lanes: float squares end at 2¹²⁷,
/// and below 2⁻⁹⁰ the terms that underflowed (at most 2⁻¹⁴⁹ each) could weigh more than 2⁻⁴⁷ of the sum.
inline constexpr double smallest_float_block = 0x1p-90;
inline constexpr double largest_float_block = 0x1p+126;

/// Σ of the lanes of doubles: halves are added until one lane is left.
template <std::size_t Bytes>
[[gnu::always_inline]] inline double sum_of_lanes(const vector<double, Bytes>& lanes) {
  if constexpr (Bytes == 2 * sizeof(double)) {
    return lanes[0] + lanes[1];
  } else {
    vector<double, Bytes / 2> low, high;
    __builtin_memcpy(&low, &lanes, Bytes / 2);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&lanes) + Bytes / 2, Bytes / 2);
    return sum_of_lanes<Bytes / 2>(low + high);
  }
}

/// Whether every element is zero, of either sign.
template <std::size_t Bytes, scalar T>
[[gnu::always_inline]] inline bool all_zero(const T* elements, std::size_t length) {
  using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  constexpr auto magnitude = static_cast<bits>(static_cast<bits>(~bits{0}) >> 1);
  constexpr std::size_t step = Bytes / sizeof(T);
  std::size_t x = 0;
  vector<bits, Bytes> any = {};
  for (; x + step <= length; x += step) {
    vector<bits, Bytes> value;
    __builtin_memcpy(&value, elements + x, Bytes);
    any |= value & magnitude;
  }
  bits rest = 0;
  for (std::size_t i = 0; i < step; ++i) rest = static_cast<bits>(rest | any[i]);
  for (; x < length; ++x) {
    bits value;
    __builtin_memcpy(&value, elements + x, sizeof(T));
    rest = static_cast<bits>(rest | (value & magnitude));
  }
  return rest == 0;
}

/// Accumulators of type L (float or double) for the inner products of N vectors, N being 1 or 2.
template <std::size_t Bytes, class L, std::size_t N, scalar T>
struct lane_sums {
  static constexpr std::size_t pairs = packed_size(N);
  /// Elements that one add() takes from each vector.
  static constexpr std::size_t width = chains * (Bytes / sizeof(compute_type<T>));

  vector<L, Bytes> sums[pairs][chains] = {};

  [[gnu::always_inline]] void add_products(const vector<L, Bytes> (&value)[N], std::size_t chain) {
#pragma GCC unroll 2
    for (std::size_t i = 0; i < N; ++i)
#pragma GCC unroll 2
      for (std::size_t j = 0; j <= i; ++j) sums[packed_index(i, j)][chain] += value[i] * value[j];
  }

  [[gnu::always_inline]] void add(const T* const (&at)[N]) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) {
      vector<compute_type<T>, Bytes> value[N];
      for (std::size_t i = 0; i < N; ++i) load<Bytes>(value[i], at[i] + c * (width / chains));
      if constexpr (std::is_same_v<L, compute_type<T>>) {
        add_products(value, c);
      } else {
        vector<L, Bytes> low[N], high[N];
        for (std::size_t i = 0; i < N; ++i) widen<Bytes>(low[i], high[i], value[i]);
        add_products(low, c);
        add_products(high, c);
      }
    }
  }

  [[gnu::always_inline]] double total(std::size_t pair) const {
    if constexpr (std::is_same_v<L, double>) {
      return sum_of_lanes<Bytes>((sums[pair][0] + sums[pair][1]) + (sums[pair][2] + sums[pair][3]));
    } else {
      vector<double, Bytes> sum = {};
      for (std::size_t c = 0; c < chains; ++c) {
        vector<double, Bytes> low, high;
        widen<Bytes>(low, high, sums[pair][c]);
        sum += low + high;
      }
      return sum_of_lanes<Bytes>(sum);
    }
  }
};

/// The inner products of N vectors over [0, length), in lanes of type L.
template <std::size_t Bytes, class L, std::size_t N, scalar T>
[[gnu::always_inline]] inline void measure_in_lanes(const T* const (&vectors)[N], std::size_t length,
                                                    double (&gram)[packed_size(N)]) {
  using accumulators = lane_sums<Bytes, L, N, T>;
  accumulators sums;
  const T* at[N];
  for (std::size_t i = 0; i < N; ++i) at[i] = vectors[i];
  std::size_t x = 0;
  for (; x + accumulators::width <= length; x += accumulators::width) {
    sums.add(at);
    for (std::size_t i = 0; i < N; ++i) at[i] += accumulators::width;
  }
  if (x < length) {  // the rest, filled up with zeros
    alignas(T) unsigned char padded[N][accumulators::width * sizeof(T)] = {};
    for (std::size_t i = 0; i < N; ++i) {
      __builtin_memcpy(padded[i], at[i], (length - x) * sizeof(T));
      at[i] = reinterpret_cast<const T*>(padded[i]);
    }
    sums.add(at);
  }
  for (std::size_t p = 0; p < packed_size(N); ++p) gram[p] = sums.total(p);
}

/// One or two vectors.
template <std::size_t N, scalar T>
struct measure_few {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t length, double* gram) {
    using L = compute_type<T>;
    constexpr std::size_t block = chain_length * chains * (Bytes / sizeof(L));
    for (std::size_t x = 0; x < length; x += block) {
      const std::size_t count = std::min(block, length - x);
      const T* at[N];
      for (std::size_t i = 0; i < N; ++i) at[i] = vectors[i] + x;
      double sums[packed_size(N)];
      measure_in_lanes<Bytes, L, N>(at, count, sums);
      bool again = false;
      for (std::size_t i = 0; i < N; ++i) {
        double& square = sums[packed_index(i, i)];
        if constexpr (std::is_same_v<L, float>)
          again |= !(square <= largest_float_block) ||
                   (square < smallest_float_block && !(square == 0 && all_zero<Bytes>(at[i], count)));
        else if (square == 0 && !all_zero<Bytes>(at[i], count))
          square = std::numeric_limits<double>::denorm_min();
      }
      if (again) measure_in_lanes<Bytes, double, N>(at, count, sums);
      for (std::size_t p = 0; p < packed_size(N); ++p) gram[p] += sums[p];
    }
  }
};

/// Any number of vectors, in double lanes. A block of every vector is turned into doubles once, small enough that all
/// of them stay in the first cache; then each square tile of four by four vectors takes its products from there.
template <scalar T>
struct measure_many {
  /// Doubles of all blocks together: 24 KiB.
  static constexpr std::size_t budget = 3072;
  static constexpr std::size_t tile = 4;

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* const* vectors, std::size_t n, std::size_t length, double* blocks,
                                         double* gram) {
    constexpr std::size_t step = Bytes / sizeof(double);
    const std::size_t block = block_length(n);
    for (std::size_t x = 0; x < length; x += block) {
      const std::size_t count = std::min(block, length - x);
      const std::size_t padded = (count + step - 1) / step * step;
      // Many streams, read in turns, are more than the processor foresees: ask for each next block while this one is read.
      const std::size_t ahead = x + 2 * block <= length ? block : 0;
      for (std::size_t i = 0; i < n; ++i) to_doubles<Bytes>(vectors[i] + x, count, padded, ahead, blocks + i * block);
      for (std::size_t i = 0; i < n; i += tile) {
        const auto rows = std::min(tile, n - i);
        for (std::size_t j = 0; j < i; j += tile) add_rows<Bytes, false>(blocks, block, padded, i, j, rows, gram);
        add_rows<Bytes, true>(blocks, block, padded, i, i, rows, gram);
      }
    }
    if constexpr (std::is_same_v<compute_type<T>, double>)
      for (std::size_t i = 0; i < n; ++i)
        if (gram[packed_index(i, i)] == 0 && !all_zero<Bytes>(vectors[i], length))
          gram[packed_index(i, i)] = std::numeric_limits<double>::denorm_min();
  }

  /// Elements of each vector that are turned into doubles at a time; a multiple of 64.
  static constexpr std::size_t block_length(std::size_t n) { return std::max<std::size_t>(64, budget / n / 64 * 64); }

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void to_doubles(const T* from, std::size_t count, std::size_t padded, std::size_t ahead,
                                                double* to) {
    constexpr std::size_t width = Bytes / sizeof(compute_type<T>);
    std::size_t x = 0;
    for (; x + width <= count; x += width) {
      vector<compute_type<T>, Bytes> value;
      __builtin_prefetch(from + x + ahead);
      load<Bytes>(value, from + x);
      write<Bytes>(value, to + x);
    }
    if (x < padded) {
      alignas(T) unsigned char rest[width * sizeof(T)] = {};
      __builtin_memcpy(rest, from + x, (count - x) * sizeof(T));
      vector<compute_type<T>, Bytes> value;
      load<Bytes>(value, reinterpret_cast<const T*>(rest));
      double doubles[width];
      write<Bytes>(value, doubles);
      for (std::size_t i = 0; x < padded; ++x, ++i) to[x] = doubles[i];
    }
  }

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void write(const vector<compute_type<T>, Bytes>& value, double* to) {
    if constexpr (std::is_same_v<compute_type<T>, double>) {
      __builtin_memcpy(to, &value, Bytes);
    } else {
      vector<double, Bytes> low, high;
      widen<Bytes>(low, high, value);
      __builtin_memcpy(to, &low, Bytes);
      __builtin_memcpy(to + Bytes / sizeof(double), &high, Bytes);
    }
  }

  template <std::size_t Bytes, bool Diagonal>
  [[gnu::always_inline]] static void add_rows(const double* blocks, std::size_t block, std::size_t length,
                                              std::size_t i, std::size_t j, std::size_t rows, double* gram) {
    switch (rows) {
      case 1: return add_tile<Bytes, 1, Diagonal>(blocks, block, length, i, j, gram);
      case 2: return add_tile<Bytes, 2, Diagonal>(blocks, block, length, i, j, gram);
      case 3: return add_tile<Bytes, 3, Diagonal>(blocks, block, length, i, j, gram);
      default: return add_tile<Bytes, tile, Diagonal>(blocks, block, length, i, j, gram);
    }
  }

  /// Adds the products of the vectors [i, i + Rows) with the vectors [j, j + tile), or those of [i, i + Rows) with each
  /// other where the tile lies on the diagonal.
  template <std::size_t Bytes, std::size_t Rows, bool Diagonal>
  [[gnu::always_inline]] static void add_tile(const double* blocks, std::size_t block, std::size_t length,
                                              std::size_t i, std::size_t j, double* gram) {
    constexpr std::size_t step = Bytes / sizeof(double), columns = Diagonal ? Rows : tile;
    vector<double, Bytes> sums[Rows][columns] = {};
    for (std::size_t x = 0; x < length; x += step) {
      vector<double, Bytes> right[columns];
#pragma GCC unroll 4
      for (std::size_t c = 0; c < columns; ++c) __builtin_memcpy(&right[c], blocks + (j + c) * block + x, Bytes);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < Rows; ++r) {
        vector<double, Bytes> left;
        __builtin_memcpy(&left, blocks + (i + r) * block + x, Bytes);
#pragma GCC unroll 4
        for (std::size_t c = 0; c < (Diagonal ? r + 1 : columns); ++c) sums[r][c] += left * right[c];
      }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (std::size_t c = 0; c < (Diagonal ? r + 1 : columns); ++c)
        gram[packed_index(i + r, j + c)] += sum_of_lanes<Bytes>(sums[r][c]);
  }
};

}  // namespace adasum::serial

#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
