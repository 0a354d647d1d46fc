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

/// Seconds of measuring so many vectors, or of mixing them into memory, or of both, one after the other.
template <std::floating_point T, class Space>
double seconds_of_kernels(const Space& space, std::span<const T* const> vectors, std::size_t length, bool measures,
                          T* mixed) {
  constexpr std::size_t most = 8;
  const std::array<std::size_t, 2> offsets{0, length};
  const slice window{segments_view{offsets}, {0, length}, 0};
  std::array<double, packed_size(most)> gram;
  std::array<double, most> weights;
  weights.fill(1. / static_cast<double>(vectors.size()));
  const double start = seconds_now();
  if (measures) space.measure(window, vectors, gram.data());
  if (mixed) space.mix(window, vectors, weights.data(), mixed);
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
    std::array<const T*, many> vectors;
    for (std::size_t i = 0; i < count; ++i) vectors[i] = memory + i * length;
    return least_of<rounds>([&] {
             return seconds_of_kernels(space, std::span<const T* const>(vectors).first(count), length, !mixes,
                                       mixes ? memory : nullptr);
           }) /
           static_cast<double>(length);
  };
  return {.pair_element = seconds_of(2, false) + seconds_of(2, true),
          .product = seconds_of(many, false) / static_cast<double>(packed_size(many)),
          .term = seconds_of(many, true) / static_cast<double>(many)};
}

}  // namespace adasum::detail
