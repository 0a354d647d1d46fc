// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/tiles.hpp"
#include "../serial/space.hpp"

namespace adasum::kokkos {

/// Kernels for execution spaces that work on memory of the host (Kokkos::Serial, OpenMP, Threads): a range over tiles,
/// each worked on by the vector kernels of serial_space. Results do not depend on the number of threads.
template <class ExecutionSpace>
class host_kernels {
 public:
  static constexpr bool on_host = true;
  std::string_view arithmetic() const { return serial_.arithmetic(); }

  /// Returns when gram is there.
  template <scalar T>
  void measure(const ExecutionSpace& instance, const slice& window, std::span<const T* const> vectors,
               double* gram) const {
    const auto packed = packed_size(vectors.size());
    const auto tiles = tiles_of(window, tile_length);
    std::vector<double> sums(tiles.size() * packed);
    const bool from_memory = serial_space::comes_from_memory<T>(window, vectors.size());
    run(instance, "adasum::measure", tiles.size(),
        [this, window, vectors, packed, from_memory, tiles = tiles.data(), sums = sums.data()](std::size_t t) {
          serial_.measure<T>(piece(window, tiles[t]), vectors, sums + t * packed, from_memory);
        });
    instance.fence();
    std::fill_n(gram, window.segments.size() * packed, 0.0);
    for (std::size_t t = 0; t < tiles.size(); ++t)
      for (std::size_t p = 0; p < packed; ++p) gram[tiles[t].segment * packed + p] += sums[t * packed + p];
  }

  template <scalar T>
  void mix(const ExecutionSpace& instance, const slice& window, std::span<const T* const> vectors,
           const double* weights, T* out) const {
    const auto n = vectors.size();
    const auto tiles = tiles_of(window, tile_length);
    const bool from_memory = serial_space::comes_from_memory<T>(window, n);
    run(instance, "adasum::mix", tiles.size(),
        [this, window, vectors, n, weights, out, from_memory, tiles = tiles.data()](std::size_t t) {
          serial_.mix<T>(piece(window, tiles[t]), vectors, weights + tiles[t].segment * n, out, from_memory);
        });
    instance.fence();  // vectors, weights and tiles are the caller's and this call's
  }

  /// Of one element type, or between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
  void copy(const ExecutionSpace& instance, const From* from, To* to, std::size_t count) const {
    run(instance, "adasum::copy", (count + tile_length - 1) / tile_length, [=, this](std::size_t t) {
      const auto begin = t * tile_length;
      serial_.copy(from + begin, to + begin, std::min(tile_length, count - begin));
    });
    instance.fence();
  }

 private:
  /// Long enough that a launch costs little, short enough that threads share even one segment: 64 KiB of float.
  static constexpr std::size_t tile_length = std::size_t{1} << 14;

  static slice piece(const slice& window, const tile& one) {
    return {window.segments.part(one.segment, 1), {window.origin + one.begin, window.origin + one.end}, window.origin};
  }

  template <class Body>
  static void run(const ExecutionSpace& instance, const char* label, std::size_t count, const Body& body) {
    if (count == 0) return;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace>(instance, 0, count), body);
  }

  serial_space serial_;
};

}  // namespace adasum::kokkos
