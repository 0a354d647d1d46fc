// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <limits>
#include <type_traits>

/// How kernels go through long vectors: in blocks, and asking for elements before they are read; what they say of squares
/// that underflow.
namespace adasum::detail::serial {

/// Pieces of up to so many floats are multiplied and added in double: it costs nothing there, and segments of one or a few
/// elements, such as biases, are often collinear, so that they cancel.
inline constexpr std::size_t few_elements = 16;

/// Independent accumulators per sum, so that an addition need not wait for the one before.
inline constexpr std::size_t chains = 4;
/// Additions into one float lane before it is emptied into a double.
inline constexpr std::size_t chain_length = 64;
/// Elements of each of one or two vectors in a block, in registers of so many bytes.
constexpr std::size_t pair_block_length(std::size_t lane_bytes, std::size_t vector_bytes) {
  return chain_length * chains * (vector_bytes / lane_bytes);
}

/// Of more vectors, how many have their products with each other added up together.
inline constexpr std::size_t tile = 4;
/// Elements of each of them in a block. In shorter ones, adding up the lanes would show; but where vectors come from memory
/// and there is little to compute for each element, short ones take up to a tenth less time. What is converted takes at
/// most 32 KiB.
/// @param converts  whether elements are converted before they are multiplied
constexpr std::size_t block_length(bool converts, std::size_t n, bool from_memory) {
  if (!converts) return from_memory && n > tile && n <= 3 * tile ? 256 : 1024;
  const std::size_t length = 8192 / n / 64 * 64;
  return length < 64 ? 64 : length > 1024 ? 1024 : length;
}
/// Bytes for each of them in which the kernel works: for what it converts, and for what is left at the end.
constexpr std::size_t scratch_bytes(bool converts, std::size_t n) {
  return converts ? block_length(converts, n, false) * sizeof(float) : 64;
}

/// Stands for the sum of squares of doubles that all underflow. A program linked with -ffast-math takes subnormal
/// numbers for zero: there it is the smallest normal one, and vectors are zero where all their elements are subnormal.
#ifdef __FAST_MATH__
inline constexpr double underflowed_square = std::numeric_limits<double>::min();
#else
inline constexpr double underflowed_square = std::numeric_limits<double>::denorm_min();
#endif

/// Asks for the cache lines of Bytes bytes. Processors foresee one stream well, and several that are read in turns
/// badly, most of all where they lie alike within their pages.
template <std::size_t Bytes, class T>
[[gnu::always_inline]] inline void prefetch(const T* from) {
  __builtin_prefetch(from);
  if constexpr (Bytes > 64) prefetch<Bytes - 64>(from + 64 / sizeof(T));
}

/// Whether vectors of so many bytes together most likely come from memory, and not from the processor's own caches.
constexpr bool exceeds_cache(std::size_t bytes) { return bytes >= std::size_t{512} << 10; }

/// Whether the result of vectors of so many bytes together, where it is none of them, is written past the caches: then its
/// cache lines are not read before they are written. Where it is shorter, those who read it next may find it in a cache.
constexpr bool goes_to_memory(std::size_t bytes) { return bytes >= std::size_t{16} << 20; }

/// How many elements ahead each vector's next ones are asked for; 0 where the vectors do not come from memory, since asking only
/// takes time then. Processors differ: Zen 3 foresees the streams well, and asking for more than four cache lines takes the place
/// of what it asks for itself (with 2 KiB, up to a third more time). An Intel Xeon needs sixteen (with four, a tenth more time for
/// two vectors, and up to a fifth for eight); Zen 5 does not care. The last two have registers of 64 bytes.
/// @tparam Bytes  of a register
template <std::size_t Bytes, class T>
constexpr std::size_t prefetch_distance(bool from_memory) {
  return from_memory ? (Bytes == 64 ? 1024 : 256) / sizeof(T) : 0;
}

/// run(end, ask) as far as elements `distance` ahead are there to be asked for, and then, without asking, to the end.
template <class Run>
[[gnu::always_inline]] inline void run_asking(std::size_t length, std::size_t distance, Run&& run) {
  if (distance != 0 && distance < length) run(length - distance, std::true_type{});
  run(length, std::false_type{});
}

}  // namespace adasum::detail::serial
