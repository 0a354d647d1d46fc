// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cub/block/block_reduce.cuh>

#include "../../core/gram.hpp"
#include "../tiles.hpp"
#include "elements.hpp"

/// Gram matrices, two kernels whatever the number of segments: each block measures a tile, and then each block adds one
/// entry of one segment's matrix over the segment's tiles.
///
/// Products and sums are doubles; products of float and narrower elements are exact. A thread adds at most 32 elements
/// of a tile and then tiles/256 partial sums, a block adds those of its 256 threads, each time in one fixed order:
///
///     |Ĝ(i, j) − gᵢ·gⱼ| ≤ (32 + 2·255 + ⌈tiles/256⌉)·2⁻⁵³ Σ |gᵢ[x]·gⱼ[x]|,   in practice far below
///
/// The order is fixed, no atomics: the same bits in every run.
namespace adasum::detail::cuda {

/// A fixed number of sums that are reduced together.
template <int Count>
struct sums {
  double at[Count];
};
struct add_sums {
  template <int Count>
  __device__ sums<Count> operator()(sums<Count> a, const sums<Count>& b) const {
#pragma unroll
    for (int p = 0; p < Count; ++p) a.at[p] += b.at[p];
    return a;
  }
};

/// The sum over the threads of a block, on thread 0. All threads must have left the last one before the next begins.
template <int Count>
__device__ inline sums<Count> add_over_block(const sums<Count>& mine) {
  using reduction = cub::BlockReduce<sums<Count>, threads_per_block>;
  __shared__ typename reduction::TempStorage storage;
  return reduction(storage).Reduce(mine, add_sums{});
}

/// A vector that is not zero has no zero square, even if the square of each of its elements underflows.
template <number_format Format>
__device__ inline void keep_square(const pack<Format>& x, double& square) {
  if constexpr (Format == number_format::binary64)
    for (unsigned e = 0; e < pack<Format>::size; ++e)
      if (x.at[e] != 0 && square == 0) square = 0x1p-1074;
}

/// The inner products of the packs of Count vectors are added to the packed matrix.
template <number_format Format, int Count>
__device__ inline void add_products(const pack<Format> (&x)[Count], sums<Count*(Count + 1) / 2>& gram) {
#pragma unroll
  for (unsigned e = 0; e < pack<Format>::size; ++e) {
    double value[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) value[i] = widen<Format>(x[i].at[e]);
#pragma unroll
    for (int i = 0; i < Count; ++i)
#pragma unroll
      for (int j = 0; j <= i; ++j) gram.at[i * (i + 1) / 2 + j] += value[i] * value[j];
  }
#pragma unroll
  for (int i = 0; i < Count; ++i) keep_square(x[i], gram.at[i * (i + 1) / 2 + i]);
}

/// Partial Gram matrices: partials[p·tiles + t] is entry p of tile t. Each vector is read once. @pre n <= Count
template <number_format Format, int Count>
__global__ void __launch_bounds__(threads_per_block, Count >= 4 ? 2 : 4)
    measure_tiles(const tile* tiles, std::size_t count, const __grid_constant__ vector_list<Count> vectors, int n,
                  double* partials) {
  constexpr unsigned in_flight = Count >= 8   ? 1
                                 : Count >= 4 ? 2
                                              : packs_per_thread;  // registers hold so many packs of each vector
  const tile one = tiles[blockIdx.x];
  sums<Count*(Count + 1) / 2> mine{};
  by_wholeness(is_whole<Format>(one, vectors, n), [&](auto whole) {
    constexpr unsigned at_once = decltype(whole)::value ? in_flight : 1;
#pragma unroll 1
    for (unsigned c = 0; c < packs_per_thread; c += at_once) {
      pack<Format> x[at_once][Count];
#pragma unroll
      for (unsigned f = 0; f < at_once; ++f)
#pragma unroll
        for (int i = 0; i < Count; ++i)
          x[f][i] = i < n ? load<Format, decltype(whole)::value>(vectors[i], place_of_pack<Format>(one, c + f), one.end)
                          : pack<Format>{};
#pragma unroll
      for (unsigned f = 0; f < at_once; ++f) add_products<Format, Count>(x[f], mine);
    }
  });
  const auto total = add_over_block(mine);
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int p = 0; p < Count * (Count + 1) / 2; ++p)
    if (p < n * (n + 1) / 2) partials[p * count + blockIdx.x] = total.at[p];
}

/// Up to so many vectors' matrix stays in a thread's registers.
inline constexpr int most_in_registers = 8;

/// The same for any number of vectors: the matrix in blocks of 4 × 4, one after the other. A tile's elements come from
/// the caches from the second block on, if tiles are short. @param vectors n addresses in memory of the device
template <number_format Format>
__global__ void __launch_bounds__(threads_per_block)
    measure_tiles_of_many(const tile* tiles, std::size_t count, const void* const* vectors, int n, double* partials) {
  constexpr int width = 4;
  const tile one = tiles[blockIdx.x];
  for (int i0 = 0; i0 < n; i0 += width)
    for (int j0 = 0; j0 <= i0; j0 += width) {
      sums<width * width> mine{};
      for (unsigned c = 0; place_of_pack<Format>(one, c) < one.end; ++c) {
        const auto first = place_of_pack<Format>(one, c);
        pack<Format> x[2 * width];
#pragma unroll
        for (int v = 0; v < 2 * width; ++v) {
          const int which = v < width ? i0 + v : j0 + v - width;
          const bool whole =
              which < n && first + pack<Format>::size <= one.end && is_at_16_bytes<Format>(vectors[which], first);
          x[v] = which >= n ? pack<Format>{}
                 : whole    ? load<Format, true>(vectors[which], first, one.end)
                            : load<Format, false>(vectors[which], first, one.end);
        }
#pragma unroll
        for (unsigned e = 0; e < pack<Format>::size; ++e)
#pragma unroll
          for (int i = 0; i < width; ++i)
#pragma unroll
            for (int j = 0; j < width; ++j)
              mine.at[i * width + j] += widen<Format>(x[i].at[e]) * widen<Format>(x[width + j].at[e]);
        if (i0 == j0)
#pragma unroll
          for (int i = 0; i < width; ++i) keep_square(x[i], mine.at[i * width + i]);
      }
      const auto total = add_over_block(mine);
      if (threadIdx.x == 0)
        for (int i = 0; i < width; ++i)
          for (int j = 0; j < width; ++j) {
            const int row = i0 + i, column = j0 + j;
            if (row < n && column <= row) {
              const auto p = packed_index(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
              partials[p * count + blockIdx.x] = total.at[i * width + j];
            }
          }
      __syncthreads();
    }
}

/// Σ partials[t] for first <= t < last, on thread 0 of the block.
__device__ inline double add_over_tiles(const double* partials, std::size_t first, std::size_t last) {
  sums<1> mine{};
#pragma unroll 8
  for (auto t = first + threadIdx.x; t < last; t += threads_per_block) mine.at[0] += partials[t];
  return add_over_block(mine).at[0];
}

/// gram[k·entries + p]: one block for each. A segment without tiles gets 0. @param first_tile of each segment, and
/// their number
template <int = 0>  // a template, so that every unit that includes this may hold it
__global__ void __launch_bounds__(threads_per_block)
    add_tiles(const double* partials, std::size_t count, const std::size_t* first_tile, std::size_t entries,
              double* gram) {
  const std::size_t k = blockIdx.x / entries, p = blockIdx.x % entries;
  const double total = add_over_tiles(partials + p * count, first_tile[k], first_tile[k + 1]);
  if (threadIdx.x == 0) gram[blockIdx.x] = total;
}

}  // namespace adasum::detail::cuda
