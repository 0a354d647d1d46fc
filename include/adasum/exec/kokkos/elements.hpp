// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>
#include <cstddef>

#include "../../core/segments.hpp"
#include "../tiles.hpp"

/// How work is shared out. Where the host works on the execution space's memory, tiles are a range, and each of them is given to
/// the vector kernels of serial_space. On a device, a team of threads works on each tile, on elements by their bits
/// (core/scalar_value.hpp), so that every storage type of a format will do.
namespace adasum::detail::kokkos {

/// Whether the host works on the memory of this space: Kokkos::Serial, OpenMP, Threads; not Cuda, HIP, SYCL.
template <class ExecutionSpace>
inline constexpr bool works_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible &&
    Kokkos::SpaceAccessibility<ExecutionSpace, Kokkos::HostSpace>::accessible;

/// Elements of the host's longest tile. A launch costs little beside it, and threads share even one segment.
inline constexpr std::size_t host_tile_length = std::size_t{1} << 14;  // 64 KiB of float
/// Elements of a team's longest tile: each of its threads, some hundreds, gets some tens of them.
inline constexpr std::size_t team_tile_length = std::size_t{1} << 13;

/// body(i) for i < count, by the threads of the host.
template <class ExecutionSpace, class Body>
void for_each_on_host(const ExecutionSpace& instance, const char* label, std::size_t count, const Body& body) {
  if (count == 0) return;
  Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace>(instance, 0, count), body);
}

/// The elements of one tile as a window of its own, of one segment.
inline slice window_of(const slice& window, const tile& one) {
  return {window.segments.part(one.segment, 1), {window.origin + one.begin, window.origin + one.end}, window.origin};
}

template <class ExecutionSpace>
using team_member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

template <class ExecutionSpace>
auto teams(const ExecutionSpace& instance, std::size_t count) {
  return Kokkos::TeamPolicy<ExecutionSpace>(instance, static_cast<int>(count), Kokkos::AUTO);
}

}  // namespace adasum::detail::kokkos
