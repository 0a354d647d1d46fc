// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device.hpp"

/// A few numbers or addresses for the device, in the arguments of a kernel: they are the host's no more when the call
/// returns, nothing waits, and a recorded graph holds them too, none of which is certain of copies from ordinary
/// memory.
namespace adasum::cuda_backend {

inline constexpr std::size_t words_at_once = 256;
struct words {
  std::uint64_t at[words_at_once];
};

template <int = 0>
__global__ void write_some_words(const __grid_constant__ words some, int count, std::uint64_t* to) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) to[i] = some.at[i];
}

/// Enqueues to[i] = values[i]; a launch for every 256. @tparam Word doubles or addresses
template <class Word>
void write_words(std::span<const Word> values, Word* to, cudaStream_t stream) {
  static_assert(sizeof(Word) == sizeof(std::uint64_t));
  for (std::size_t first = 0; first < values.size(); first += words_at_once) {
    const auto some = values.subspan(first, std::min(words_at_once, values.size() - first));
    words list{};
    std::transform(some.begin(), some.end(), list.at, [](Word word) { return std::bit_cast<std::uint64_t>(word); });
    launch("write_words", write_some_words<>, {1, 64}, stream, list, static_cast<int>(some.size()),
           reinterpret_cast<std::uint64_t*>(to + first));
  }
}

}  // namespace adasum::cuda_backend
