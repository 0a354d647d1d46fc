// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cuda_runtime.h>

#include <cstddef>

#include "../tiles.hpp"
#include "elements.hpp"

/// Linear combinations and conversions, one kernel whatever the number of segments.
namespace adasum::detail::cuda {

/// out[x] = Σᵢ weights[k·n + i]·vᵢ[x] for the tiles of all segments k, added in double in the order of i and rounded
/// once. `out` may be one of the vectors. A vector of weight 0 is not read.
/// @param vectors  n addresses: a vector_list, or an array of the device
template <number_format Format, class Vectors>
__global__ void __launch_bounds__(threads_per_block)
    mix_tiles(const tile* tiles, const __grid_constant__ Vectors vectors, int n, const double* weights,
              storage_of<Format>* out) {
  const tile one = tiles[blockIdx.x];
  const double* const weight = weights + one.segment * static_cast<std::size_t>(n);
  by_wholeness(is_whole<Format>(one, vectors, n) && is_at_16_bytes<Format>(out, one.begin), [&](auto whole) {
    // As many packs at once as leave their results in registers.
    constexpr unsigned at_once = !decltype(whole)::value  ? 1
                                 : pack<Format>::size > 4 ? packs_per_thread / 2
                                                          : packs_per_thread;
#pragma unroll 1
    for (unsigned first = 0; first < packs_per_thread; first += at_once) {
      double result[at_once][pack<Format>::size] = {};
      for (int i = 0; i < n; ++i) {
        const double w = weight[i];
        if (w == 0) continue;
        pack<Format> x[at_once];
#pragma unroll
        for (unsigned c = 0; c < at_once; ++c)
          x[c] = load<Format, decltype(whole)::value>(vectors[i], place_of_pack<Format>(one, first + c), one.end);
#pragma unroll
        for (unsigned c = 0; c < at_once; ++c)
#pragma unroll
          for (unsigned e = 0; e < pack<Format>::size; ++e) result[c][e] += w * widen<Format>(x[c].at[e]);
      }
#pragma unroll
      for (unsigned c = 0; c < at_once; ++c) {
        pack<Format> x;
#pragma unroll
        for (unsigned e = 0; e < pack<Format>::size; ++e) x.at[e] = narrow<Format>(result[c][e]);
        store<Format, decltype(whole)::value>(x, out, place_of_pack<Format>(one, first + c), one.end);
      }
    }
  });
}

/// to[i] = from[i], rounded to nearest even.
template <number_format From, number_format To>
__global__ void __launch_bounds__(threads_per_block)
    convert(const storage_of<From>* from, storage_of<To>* to, std::size_t count) {
  const auto i = std::size_t{blockIdx.x} * threads_per_block + threadIdx.x;
  if (i < count) to[i] = narrow<To>(widen<From>(from[i]));
}

/// to[k·count + i], k < pieces, are added in the order of k into out[i]: sums of the ranks' partial inner products.
template <int = 0>
__global__ void __launch_bounds__(threads_per_block)
    add_pieces(const double* from, std::size_t pieces, std::size_t count, double* out) {
  const auto i = std::size_t{blockIdx.x} * threads_per_block + threadIdx.x;
  if (i >= count) return;
  double sum = 0;
  for (std::size_t k = 0; k < pieces; ++k) sum += from[k * count + i];
  out[i] = sum;
}

}  // namespace adasum::detail::cuda
