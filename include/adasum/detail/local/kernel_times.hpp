// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/segments.hpp"

namespace adasum::detail {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The least of what measure() returns, after one call that does not count: what else the machine does meanwhile makes
/// the others longer. Allocates nothing.
template <std::size_t Times, class Measure>
double least_of(Measure&& measure) {
  measure();
  double least = measure();
  for (std::size_t i = 1; i < Times; ++i) least = std::min(least, static_cast<double>(measure()));
  return least;
}

/// Memory of a space for so many elements, all of them 1.
template <std::floating_point T, class Space>
auto allocate_ones(const Space& space, std::size_t count) {
  auto memory = space.template allocate<T>(count);
  if constexpr (device_space<Space>) {
    const std::vector<T> ones(count, T{1});
    space.upload(ones.data(), memory.data(), count * sizeof(T));
    space.fence();
  } else {
    std::fill_n(memory.data(), count, T{1});
  }
  return memory;
}

/// Seconds of the arithmetic of a reduction.
struct kernel_times {
  double pair_element = 0;  ///< to measure and mix an element of two vectors
  double product = 0;       ///< for each element and entry of the Gram matrix of more vectors
  double term = 0;          ///< for each element of more vectors that are mixed
};

/// Seconds of measuring two vectors and of mixing them into the first.
template <std::floating_point T, class Space>
double seconds_of_pair(const Space& space, T* a, const T* b, std::size_t elements) {
  const std::array<const T*, 2> vectors{a, b};
  const std::array<std::size_t, 2> offsets{0, elements};
  const slice window{segments_view{offsets}, {0, elements}, 0};
  std::array<double, packed_size(2)> gram;
  const std::array<double, 2> weights{0.5, 0.5};
  const double start = seconds_now();
  space.measure(window, std::span<const T* const>(vectors), gram.data());
  space.mix(window, std::span<const T* const>(vectors), weights.data(), a);
  space.fence();
  return seconds_now() - start;
}

/// Measures both kernels of a space on two vectors of so many elements, and on more vectors of as many elements together.
/// @param memory  so many elements twice
template <std::floating_point T, class Space>
kernel_times measure_kernels(const Space& space, T* memory, std::size_t elements) {
  constexpr std::size_t many = 8, rounds = 7;
  const auto seconds_of = [&](std::size_t count, bool mixes) {
    const auto length = 2 * elements / count;
    std::vector<const T*> vectors;
    for (std::size_t i = 0; i < count; ++i) vectors.push_back(memory + i * length);
    const std::array<std::size_t, 2> offsets{0, length};
    const slice window{segments_view{offsets}, {0, length}, 0};
    std::vector<double> gram(packed_size(count));
    const std::vector<double> weights(count, 1. / static_cast<double>(count));
    return least_of<rounds>([&] {
             const double start = seconds_now();
             if (mixes)
               space.mix(window, std::span<const T* const>(vectors), weights.data(), memory);
             else
               space.measure(window, std::span<const T* const>(vectors), gram.data());
             space.fence();
             return seconds_now() - start;
           }) /
           static_cast<double>(length);
  };
  return {.pair_element = seconds_of(2, false) + seconds_of(2, true),
          .product = seconds_of(many, false) / static_cast<double>(packed_size(many)),
          .term = seconds_of(many, true) / static_cast<double>(many)};
}

}  // namespace adasum::detail
