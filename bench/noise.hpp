// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>

/// Fills a vector with uniform values between -1 and 1 that depend on the seed alone: nothing is zero for long or
/// subnormal, and two seeds are nearly orthogonal.
template <class T>
void fill_with_noise(std::span<T> vector, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435769u + 1;
  for (auto& element : vector) {
    state = state * 1664525u + 1013904223u;
    element = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f);
  }
}
