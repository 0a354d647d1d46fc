// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstddef>

#include "../../core/gram.hpp"
#include "../tiles.hpp"
#include "elements.hpp"
#include "measure.hpp"
#include "weigh.hpp"

/// Two vectors that fit in the registers and the shared memory of the whole device: one kernel that reads each of them
/// once (3N elements of traffic in place of 5N). The same numbers as by measure_tiles, add_tiles, weigh_segments and
/// mix_tiles.
namespace adasum::detail::cuda {

/// So many tiles of a block stay in registers; the others in shared memory.
inline constexpr unsigned tiles_in_registers = 2;
inline constexpr unsigned blocks_per_multiprocessor = 2;
/// Shared memory for a tile of both vectors.
inline constexpr std::size_t shared_bytes_per_tile = std::size_t{2} * packs_per_thread * threads_per_block * 16;

/// This thread's elements of one tile of both vectors.
template <number_format Format>
struct tile_of_two {
  pack<Format> of[packs_per_thread][2];

  __device__ void load_and_add(const tile& one, const vector_list<2>& vectors, sums<3>& gram) {
    by_wholeness(is_whole<Format>(one, vectors, 2), [&](auto whole) {
#pragma unroll
      for (unsigned c = 0; c < packs_per_thread; ++c)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          of[c][i] = load<Format, decltype(whole)::value>(vectors[i], place_of_pack<Format>(one, c), one.end);
    });
#pragma unroll
    for (unsigned c = 0; c < packs_per_thread; ++c) add_products<Format, 2>(of[c], gram);
  }

  __device__ void mix(const tile& one, const double (&weights)[2], storage_of<Format>* out) const {
    by_wholeness(is_whole<Format>(one, vector_list<1>{{out}}, 1), [&](auto whole) {
#pragma unroll
      for (unsigned c = 0; c < packs_per_thread; ++c) {
        pack<Format> result;
#pragma unroll
        for (unsigned e = 0; e < pack<Format>::size; ++e) {
          double sum = 0;
#pragma unroll
          for (int i = 0; i < 2; ++i)
            if (weights[i] != 0) sum += weights[i] * widen<Format>(of[c][i].at[e]);
          result.at[e] = narrow<Format>(sum);
        }
        store<Format, decltype(whole)::value>(result, out, place_of_pack<Format>(one, c), one.end);
      }
    });
  }

  // Shared memory is only a place to put things here: each thread reads what it wrote itself.
  __device__ void put(uint4* shared) const {
#pragma unroll
    for (unsigned c = 0; c < packs_per_thread; ++c)
#pragma unroll
      for (unsigned i = 0; i < 2; ++i)
        shared[(c * 2 + i) * threads_per_block + threadIdx.x] = __builtin_bit_cast(uint4, of[c][i]);
  }
  __device__ void take(const uint4* shared) {
#pragma unroll
    for (unsigned c = 0; c < packs_per_thread; ++c)
#pragma unroll
      for (unsigned i = 0; i < 2; ++i)
        of[c][i] = __builtin_bit_cast(pack<Format>, shared[(c * 2 + i) * threads_per_block + threadIdx.x]);
  }
};

/// The inner products of two vectors over the tiles [first, last), on thread 0. Ends with a barrier.
__device__ inline void add_pair_over_tiles(const double* partials, std::size_t count, std::size_t first,
                                           std::size_t last, double (&gram)[3]) {
  for (int p = 0; p < 3; ++p) {
    gram[p] = add_over_tiles(partials + p * count, first, last);
    __syncthreads();
  }
}

/// The tile that a block has as its own number `own`.
__device__ inline std::size_t own_tile(unsigned own) { return blockIdx.x + std::size_t{own} * gridDim.x; }

/// Where a block keeps its own tile number `own`, which is not in registers.
__device__ inline uint4* place_of_tile(uint4* on_chip, unsigned own) {
  return on_chip + (own - tiles_in_registers) * (shared_bytes_per_tile / sizeof(uint4));
}

/// Loads a block's tiles, the first into `kept` and the others into shared memory, and writes their inner products.
template <number_format Format>
__device__ void measure_own_tiles(const tile* tiles, std::size_t count, const vector_list<2>& vectors, double* partials,
                                  tile_of_two<Format> (&kept)[tiles_in_registers], uint4* on_chip) {
  const auto measured = [&](std::size_t t, sums<3>& mine) {
    const auto total = add_over_block(mine);
    if (threadIdx.x == 0)
      for (int p = 0; p < 3; ++p) partials[p * count + t] = total.at[p];
    __syncthreads();
  };
#pragma unroll
  for (unsigned own = 0; own < tiles_in_registers; ++own) {
    if (own_tile(own) >= count) continue;
    sums<3> mine{};
    kept[own].load_and_add(tiles[own_tile(own)], vectors, mine);
    measured(own_tile(own), mine);
  }
  for (unsigned own = tiles_in_registers; own_tile(own) < count; ++own) {
    tile_of_two<Format> some;
    sums<3> mine{};
    some.load_and_add(tiles[own_tile(own)], vectors, mine);
    some.put(place_of_tile(on_chip, own));
    measured(own_tile(own), mine);
  }
}

/// measure → weigh → mix. Launched cooperatively: block b works on the tiles b, b + gridDim.x, b + 2·gridDim.x, …
/// @param partials  3·count doubles
template <number_format Format, class Rule>
__global__ void __launch_bounds__(threads_per_block, blocks_per_multiprocessor)
    combine_on_chip(Rule rule, const tile* tiles, std::size_t count, const std::size_t* first_tile,
                    const __grid_constant__ vector_list<2> vectors, double* partials, storage_of<Format>* out) {
  extern __shared__ uint4 on_chip[];
  tile_of_two<Format> kept[tiles_in_registers];
  measure_own_tiles(tiles, count, vectors, partials, kept, on_chip);

  cooperative_groups::this_grid().sync();

  // Every block adds the partial sums of the segments that it has tiles of: less work than another round between
  // blocks.
  __shared__ double weights_of_segment[2];
  double weights[2] = {};
  std::size_t weighed = static_cast<std::size_t>(-1);
  const auto weigh = [&](std::size_t segment) {
    if (segment == weighed) return;
    weighed = segment;
    double gram[3];
    add_pair_over_tiles(partials, count, first_tile[segment], first_tile[segment + 1], gram);
    if (threadIdx.x == 0) weigh_few<2>(rule, gram_view(gram, 2), nullptr, weights_of_segment);
    __syncthreads();
    weights[0] = weights_of_segment[0];
    weights[1] = weights_of_segment[1];
    __syncthreads();
  };
#pragma unroll
  for (unsigned own = 0; own < tiles_in_registers; ++own) {
    if (own_tile(own) >= count) continue;
    weigh(tiles[own_tile(own)].segment);
    kept[own].mix(tiles[own_tile(own)], weights, out);
  }
  for (unsigned own = tiles_in_registers; own_tile(own) < count; ++own) {
    tile_of_two<Format> some;
    some.take(place_of_tile(on_chip, own));
    weigh(tiles[own_tile(own)].segment);
    some.mix(tiles[own_tile(own)], weights, out);
  }
}

}  // namespace adasum::detail::cuda
