// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <limits>

/// How kernels cut long vectors into blocks; and what they say of squares that underflow.
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

}  // namespace adasum::detail::serial
