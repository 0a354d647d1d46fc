// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/segments.hpp"
#include "../../core/tiles.hpp"
#include "../serial/space.hpp"

namespace adasum {

/// The execution space of a Kokkos execution space that works on memory of the host (Kokkos::Serial, OpenMP, Threads).
///
///     adasum::kokkos_space exec{Kokkos::DefaultHostExecutionSpace{}};
///     adasum::adasum_pair(exec, a, b, out);  // Kokkos::View<float*>, or any contiguous range
///
/// Every kernel is launched on the instance that was given, and only that instance is fenced, only where the host reads.
/// One measure and one mix is one kernel whatever the number of segments: a range over tiles (tiles.hpp), each worked on
/// by the vector kernels of serial_space. So results do not depend on the number of threads. Holds the contract of the
/// concept execution_space for every scalar; Kokkos must be initialised.
template <class ExecutionSpace = Kokkos::DefaultHostExecutionSpace>
class kokkos_space {
  static_assert(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<ExecutionSpace, Kokkos::HostSpace>::accessible,
                "adasum::kokkos_space: this Kokkos execution space does not work on memory of the host");

 public:
  static constexpr std::string_view name = "kokkos";
  using memory_space = typename ExecutionSpace::memory_space;

  kokkos_space() = default;
  explicit kokkos_space(ExecutionSpace instance) : instance_(std::move(instance)) {}

  const ExecutionSpace& instance() const { return instance_; }
  /// Ranks whose spaces differ in this do not round alike, so they could not end bitwise identical.
  std::string_view arithmetic() const { return serial_.arithmetic(); }

  /// Uninitialised memory of the execution space, owned by the view that is returned.
  template <scalar T>
  Kokkos::View<T*, memory_space> allocate(std::size_t count) const {
    return Kokkos::View<T*, memory_space>(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("adasum")), count);
  }

  /// Returns when gram is there.
  template <scalar T>
  void measure(const slice& window, std::span<const T* const> vectors, double* gram) const {
    const auto packed = packed_size(vectors.size());
    const auto tiles = tiles_of(window, tile_length);
    std::vector<double> sums(tiles.size() * packed);
    for_each_tile("adasum::measure", tiles, [this, window, vectors, packed, sums = sums.data()](const tile& one, std::size_t t) {
      serial_.measure<T>(piece(window, one), vectors, sums + t * packed);
    });
    instance_.fence();
    std::fill_n(gram, window.segments.size() * packed, 0.0);
    for (std::size_t t = 0; t < tiles.size(); ++t)
      for (std::size_t p = 0; p < packed; ++p) gram[tiles[t].segment * packed + p] += sums[t * packed + p];
  }

  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    const auto n = vectors.size();
    const auto tiles = tiles_of(window, tile_length);
    for_each_tile("adasum::mix", tiles, [this, window, vectors, n, weights, out](const tile& one, std::size_t) {
      serial_.mix<T>(piece(window, one), vectors, weights + one.segment * n, out);
    });
    instance_.fence();  // vectors, weights and tiles are the caller's and this call's
  }

  template <scalar T>
  void copy(const T* from, T* to, std::size_t count) const {
    copy_in_parts(from, to, count);
  }
  /// Between float and a 16-bit type, rounded to nearest even.
  template <scalar From, scalar To>
    requires(!std::same_as<From, To>) && requires(const serial_space& serial, const From* from, To* to) {
      serial.copy(from, to, std::size_t{});
    }
  void copy(const From* from, To* to, std::size_t count) const {
    copy_in_parts(from, to, count);
  }

  void fence() const { instance_.fence(); }

 private:
  /// Long enough that a launch costs little, short enough that threads share even one segment: 64 KiB of float.
  static constexpr std::size_t tile_length = std::size_t{1} << 14;

  static slice piece(const slice& window, const tile& one) {
    return {window.segments.part(one.segment, 1), {window.origin + one.begin, window.origin + one.end}, window.origin};
  }

  template <class Body>
  void for_each_tile(const char* label, const std::vector<tile>& tiles, const Body& body) const {
    run(label, tiles.size(), [body, tiles = tiles.data()](std::size_t t) { body(tiles[t], t); });
  }

  template <class From, class To>
  void copy_in_parts(const From* from, To* to, std::size_t count) const {
    run("adasum::copy", (count + tile_length - 1) / tile_length, [=, this](std::size_t t) {
      const auto begin = t * tile_length;
      serial_.copy(from + begin, to + begin, std::min(tile_length, count - begin));
    });
    instance_.fence();
  }

  template <class Body>
  void run(const char* label, std::size_t count, const Body& body) const {
    if (count == 0) return;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace>(instance_, 0, count), body);
  }

  ExecutionSpace instance_;
  serial_space serial_;
};

}  // namespace adasum
