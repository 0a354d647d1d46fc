// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

/// Asking for elements before they are read.
namespace adasum::serial {

/// Asks for the cache lines of Bytes bytes. Processors foresee one stream well, and several that are read in turns badly, most
/// of all where they lie alike within their pages.
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline void prefetch(const T* from) {
  __builtin_prefetch(from);
  if constexpr (Bytes > 64) prefetch<Bytes - 64>(from + 64 / sizeof(T));
}

/// How many elements ahead of what is read to ask for those of n vectors: 16 KiB of all of them, within 1 and 2 KiB of each;
/// 0 where the caches may hold the vectors, which are then read faster without. Less than the length: what lies behind the
/// last element may be another rank's, who would have to fetch it back.
template <class T>
constexpr std::size_t prefetch_distance(std::size_t n, std::size_t length) {
  constexpr std::size_t cached_bytes = 512 * 1024;
  if (n * length * sizeof(T) < cached_bytes) return 0;
  return std::clamp<std::size_t>(16384 / n, 1024, 2048) / sizeof(T);
}

}  // namespace adasum::serial
