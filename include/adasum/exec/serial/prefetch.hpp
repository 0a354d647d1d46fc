// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <type_traits>

/// Asking for elements before they are read.
namespace adasum::detail::serial {

/// Asks for the cache lines of Bytes bytes. Processors foresee one stream well, and several that are read in turns
/// badly, most of all where they lie alike within their pages.
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline void prefetch(const T* from) {
  __builtin_prefetch(from);
  if constexpr (Bytes > 64) prefetch<Bytes - 64>(from + 64 / sizeof(T));
}

/// Whether vectors of so many bytes together most likely come from memory, and not from the processor's own caches.
constexpr bool come_from_memory(std::size_t bytes) { return bytes >= std::size_t{512} << 10; }

/// Whether the result of vectors of so many bytes together, where it is none of them, is written past the caches: then its
/// cache lines are not read before they are written. Where it is shorter, those who read it next may find it in a cache.
constexpr bool goes_to_memory(std::size_t bytes) { return bytes >= std::size_t{16} << 20; }

/// How many elements ahead each vector's next ones are asked for; 0 where the vectors do not come from memory, since asking only
/// takes time then. Four cache lines: if a processor foresees the streams well, asking for more takes the place of what it asks
/// for itself. (On Zen 3, 2 KiB instead took up to a third more time.)
template <class T>
constexpr std::size_t prefetch_distance(bool from_memory) {
  return from_memory ? 256 / sizeof(T) : 0;
}

/// run(end, ask) as far as elements `distance` ahead are there to be asked for, and then, without asking, to the end.
template <class Run>
[[gnu::always_inline]] inline void run_asking(std::size_t length, std::size_t distance, Run&& run) {
  if (distance != 0 && distance < length) run(length - distance, std::true_type{});
  run(length, std::false_type{});
}

}  // namespace adasum::detail::serial
