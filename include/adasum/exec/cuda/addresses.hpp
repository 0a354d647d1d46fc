// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "device.hpp"
#include "elements.hpp"

namespace adasum::cuda_backend {

/// So many addresses travel in the arguments of one kernel. A recorded graph holds them too, which a copy from memory of the
/// host would not.
inline constexpr int addresses_at_once = 256;

template <int = 0>
__global__ void write_some_addresses(const __grid_constant__ vector_list<addresses_at_once> some, int count, const void** to) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) to[i] = some[i];
}

/// Enqueues to[i] = vectors[i].
template <class T>
void write_addresses(std::span<const T* const> vectors, const void** to, cudaStream_t stream) {
  for (std::size_t first = 0; first < vectors.size(); first += addresses_at_once) {
    const auto some = vectors.subspan(first, std::min<std::size_t>(addresses_at_once, vectors.size() - first));
    vector_list<addresses_at_once> list{};
    std::copy(some.begin(), some.end(), list.at);
    launch("write_addresses", write_some_addresses<>, {1, 64}, stream, list, static_cast<int>(some.size()), to + first);
  }
}

}  // namespace adasum::cuda_backend
