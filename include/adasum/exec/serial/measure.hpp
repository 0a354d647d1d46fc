// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "blocks.hpp"
#include "elements.hpp"
#include "instruction_set.hpp"
#include "lanes.hpp"

/// The measure kernels: the Gram matrix of n vectors over one contiguous piece, added to what is there.
///
/// One or two vectors of at most 32 bits per element (of floats: more than few_elements) are multiplied and added in float
/// lanes, emptied into a double after at most chain_length additions each:
/// |error of gᵢ·gⱼ| <= (chain_length + 1)·2⁻²⁴ · Σ|gᵢ||gⱼ|, that is 3.9e-6 at worst (signs and magnitudes of rounding errors
/// average out; 1e-8 is usual). Everything else uses double lanes: there products of floats are exact, and
/// |error| <= (length / lanes + lanes)·2⁻⁵³ · Σ|gᵢ||gⱼ|.
/// No result depends on where the vectors lie in memory. `from_memory`: see exceeds_cache.
///
/// Vectors are measured block by block, and the sums of each block are added to those of the blocks before. Where threads
/// measure parts of one piece, they keep the sums of each block, so that these can be added in the same order: `apart` is
/// how many numbers further on those of the next block go, which are 0 before; 0 if all blocks are added up in one place.
namespace adasum::detail::serial {

/// A block whose sums of squares lie outside these bounds is done again in double lanes: float squares end at 2¹²⁷,
/// and below 2⁻⁹⁰ the terms that underflowed (at most 2⁻¹⁴⁹ each) could weigh more than 2⁻⁴⁷ of the sum.
inline constexpr double smallest_float_block = 0x1p-90;
inline constexpr double largest_float_block = 0x1p+126;
/// Not for NaN.
constexpr bool fits_float_block(double square) {
  const auto bits = detail::magnitude_bits(square);
  return bits >= detail::magnitude_bits(smallest_float_block) && bits <= detail::magnitude_bits(largest_float_block);
}

/// Bytes of each vector from which on it pays to read whole cache lines.
inline constexpr std::size_t long_enough_to_rotate = 8192;

/// The inner products of Count vectors over [0, length), in lanes of type L. Asks for what lies `ahead` elements further
/// on.
/// @param others_before  whether this is not the beginning of the vectors
template <std::size_t Bytes, class L, std::size_t Count, scalar T>
[[gnu::always_inline]] inline void measure_in_lanes(const T* const (&vectors)[Count], std::size_t length,
                                                    std::size_t ahead, bool others_before,
                                                    double (&gram)[packed_size(2)]) {
  using accumulators = lane_sums<Bytes, L, Count, T>;
  accumulators sums;
  const T* at[Count];
  for (std::size_t i = 0; i < Count; ++i) at[i] = vectors[i];
  std::size_t head = 0;
  if constexpr (accumulators::can_rotate)
    if (length * sizeof(T) >= long_enough_to_rotate) head = elements_to_boundary<Bytes>(at[0]);
  if constexpr (accumulators::can_rotate)
    if (head != 0) sums.add_head(at, head, others_before);
  const std::size_t x = head + sums.add_all(at, length - head, ahead);
  if (x < length) {  // the rest, filled up with zeros
    alignas(T) unsigned char padded[Count][accumulators::width * sizeof(T)] = {};
    for (std::size_t i = 0; i < Count; ++i) {
      copy_fewer<sizeof(padded[i]), sizeof(T)>(padded[i], at[i], (length - x) * sizeof(T));
      at[i] = reinterpret_cast<const T*>(padded[i]);
    }
    sums.add(at);
  }
  sums.totals(gram, head);
}

/// The inner products of a and b in double lanes, for a block that float lanes cannot hold. It is rare, so that it is a
/// function of its own, shared by measure_few<1> and measure_few<2>.
template <scalar T>
struct measure_again {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const T* a, const T* b, std::size_t length, double* gram) {
    const T* const both[] = {a, b};
    double sums[packed_size(2)];
    measure_in_lanes<Bytes, double, 2>(both, length, 0, false, sums);
    for (std::size_t p = 0; p < packed_size(2); ++p) gram[p] = sums[p];
  }
};

/// One or two vectors.
template <std::size_t Count, scalar T>
struct measure_few {
  using L = compute_type<T>;

  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* vectors, std::size_t length, bool from_memory, double* gram,
                                         std::size_t apart) {
    if constexpr (std::is_same_v<T, float>)
      if (length <= few_elements) return add_in_double(vectors[0], vectors[Count - 1], length, gram);
    constexpr std::size_t block = pair_block_length(sizeof(L), Bytes);
    const std::size_t distance = prefetch_distance<Bytes, T>(from_memory);
    for (std::size_t x = 0; x < length; x += block) {
      const std::size_t count = std::min(block, length - x);
      const T* at[Count];
      for (std::size_t i = 0; i < Count; ++i) at[i] = static_cast<const T*>(vectors[i]) + x;
      double sums[packed_size(2)];
      measure_in_lanes<Bytes, L, Count>(at, count, length - x >= block + distance ? distance : 0, x != 0, sums);
      bool again = false;
      for (std::size_t i = 0; i < Count; ++i) {
        double& square = sums[packed_index(i, i)];
        if constexpr (std::is_same_v<L, float>)
          again |= !fits_float_block(square) && !(detail::is_zero(square) && all_zero<Bytes>(at[i], count));
        else if (detail::is_zero(square) && !all_zero<Bytes>(at[i], count))
          square = underflowed_square;
      }
      if constexpr (std::is_same_v<L, float>)
        if (again) run_apart<Bytes, measure_again<T>>(at[0], at[Count - 1], count, static_cast<double*>(sums));
      for (std::size_t p = 0; p < packed_size(Count); ++p) gram[p] += sums[p];
      gram += apart;
    }
  }

 private:
  [[gnu::always_inline]] static void add_in_double(const void* a, const void* b, std::size_t length, double* gram) {
    typedef T any_type __attribute__((may_alias));
    double sums[packed_size(2)] = {};
    for (std::size_t x = 0; x < length; ++x) {
      const double left = static_cast<const any_type*>(a)[x], right = static_cast<const any_type*>(b)[x];
      sums[0] += left * left;
      if constexpr (Count == 2) sums[1] += right * left, sums[2] += right * right;
    }
    for (std::size_t p = 0; p < packed_size(Count); ++p) gram[p] += sums[p];
  }
};

/// The products of one tile over [0, length); see tile_sums.
template <class Element, std::size_t Rows, bool Diagonal>
struct measure_tile {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* at, std::size_t i, std::size_t j, std::size_t length,
                                         std::size_t ahead, double* gram) {
    constexpr std::size_t entries = Diagonal ? Rows : tile;
    const Element *left[Rows], *right[entries];
    for (std::size_t r = 0; r < Rows; ++r) left[r] = static_cast<const Element*>(at[i + r]);
    for (std::size_t c = 0; c < entries; ++c) right[c] = static_cast<const Element*>(at[j + c]);
    tile_sums<Bytes, Rows, entries, Diagonal> sums;
    for (std::size_t x = 0; x < length; x += sums.step) sums.add(left, right, x, ahead);
    sums.add_to(gram, i, j);
  }
};

/// The products of n vectors over [0, length), tile by tile. Each kind of tile is a function of its own: one function
/// for all of them would take the compiler several times as long.
template <class Element>
struct measure_block {
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* at, std::size_t n, std::size_t length, std::size_t ahead,
                                         double* gram) {
    // Accumulators and operands of a tile fit into the registers: 32 on aarch64 and with 64 bytes, 16 with fewer.
    constexpr std::size_t most_rows = Bytes == 64 || has_neon ? tile : tile / 2;
    for (std::size_t i = 0; i < n; i += tile) {
      const auto rows = std::min(tile, n - i);
      for (std::size_t j = 0; j < i; j += tile)
        for (std::size_t r = 0; r < rows; r += most_rows)
          add_rows<Bytes, false, most_rows>(at, i + r, j, std::min(most_rows, rows - r), length, j == 0 ? ahead : 0,
                                            gram);
      add_rows<Bytes, true, tile>(at, i, i, rows, length, i == 0 ? ahead : 0, gram);
    }
  }

 private:
  template <std::size_t Bytes, bool Diagonal, std::size_t Most>
  [[gnu::always_inline]] static void add_rows(const void* const* at, std::size_t i, std::size_t j, std::size_t rows,
                                              std::size_t length, std::size_t ahead, double* gram) {
    if (rows == Most) return run_apart<Bytes, measure_tile<Element, Most, Diagonal>>(at, i, j, length, ahead, gram);
    if constexpr (Most > 1) add_rows<Bytes, Diagonal, Most - 1>(at, i, j, rows, length, ahead, gram);
  }
};

/// Any number of vectors, in double lanes. The vectors are cut into blocks that stay in the cache; within a block, each
/// square tile of up to four by four vectors takes its products straight from the elements: turning floats into doubles
/// costs next to nothing beside the additions, storing them would not.
template <scalar T>
struct measure_many {
  using element = compute_type<T>;
  static constexpr bool converts = !std::is_same_v<T, element>;

  /// @param scratch  n · scratch_bytes(converts, n)
  /// @param at       n pointers
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void run(const void* const* vectors, std::size_t n, std::size_t length,
                                         bool from_memory, void* scratch, const void** at, double* gram,
                                         std::size_t apart) {
    constexpr std::size_t step = Bytes / (converts ? sizeof(element) : sizeof(double));
    const std::size_t distance = prefetch_distance<Bytes, T>(from_memory), block = block_length(converts, n, from_memory);
    const void* const* const pointers = at;
    const auto element_of = [&](std::size_t i, std::size_t x) { return static_cast<const T*>(vectors[i]) + x; };
    const auto scratch_of = [&](std::size_t i) {
      return reinterpret_cast<element*>(static_cast<char*>(scratch) + i * scratch_bytes(converts, n));
    };
    double* const first = gram;
    std::size_t x = 0;
    while (length - x >= step) {
      const std::size_t count = std::min(block, length - x) / step * step;
      const std::size_t ahead = length - x >= count + distance ? distance : 0;
      if constexpr (converts) {
        for (std::size_t i = 0; i < n; ++i) {
          at[i] = scratch_of(i);
          convert_some<Bytes>(element_of(i, x), count, ahead, scratch_of(i));
        }
        run_apart<Bytes, measure_block<element>>(pointers, n, count, std::size_t{0}, gram);
      } else {
        for (std::size_t i = 0; i < n; ++i) at[i] = element_of(i, x);
        run_apart<Bytes, measure_block<element>>(pointers, n, count, ahead, gram);
      }
      x += count;
      gram += apart;
    }
    if (x < length) {  // the rest, filled up with zeros
      for (std::size_t i = 0; i < n; ++i) {
        alignas(T) unsigned char rest[step * sizeof(T)] = {};
        copy_fewer<sizeof(rest), sizeof(T)>(rest, element_of(i, x), (length - x) * sizeof(T));
        element* const to = scratch_of(i);
        if constexpr (converts)
          convert_some<Bytes>(reinterpret_cast<const T*>(rest), step, 0, to);
        else
          __builtin_memcpy(to, rest, sizeof(rest));
        at[i] = to;
      }
      run_apart<Bytes, measure_block<element>>(pointers, n, step, std::size_t{0}, gram);
      gram += apart;
    }
    if constexpr (std::is_same_v<element, double>)
      for (std::size_t i = 0; i < n; ++i)
        if (all_sums_are_zero(first, gram, apart, packed_index(i, i)) && !all_zero<Bytes>(element_of(i, 0), length))
          first[packed_index(i, i)] = underflowed_square;
  }

 private:
  /// Number p of every block, from `first` on; those of the one place where apart is 0.
  static bool all_sums_are_zero(const double* first, const double* end, std::size_t apart, std::size_t p) {
    while (detail::is_zero(first[p]))
      if (apart == 0 || (first += apart) == end) return true;
    return false;
  }

  /// Elements become operands of products. @pre count is a multiple of Bytes / sizeof(float)
  template <std::size_t Bytes>
  [[gnu::always_inline]] static void convert_some(const T* from, std::size_t count, std::size_t ahead, element* to) {
    constexpr std::size_t width = Bytes / sizeof(element);
    for (std::size_t x = 0; x < count; x += width) {
      vector<element, Bytes> value;
      if (ahead != 0) prefetch<width * sizeof(T)>(from + x + ahead);
      load<Bytes>(value, from + x);
      __builtin_memcpy(to + x, &value, Bytes);
    }
  }
};

}  // namespace adasum::detail::serial
