// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "../../core/scalar.hpp"
#include "../../core/scalar_value.hpp"
#include "../../core/segments.hpp"
#include "../serial.hpp"
#include "../tiles.hpp"
#include "elements.hpp"
#include "workspace.hpp"

/// Linear combinations, one kernel whatever the number of segments, and copies. out[x] = Σᵢ weights[k·n + i]·vᵢ[x], k
/// being the segment of x; a vector of weight 0 is not read. The functions that mix return when the host's arrays have
/// been read.
namespace adasum::detail::kokkos {

/// By kernel(part of the window, weights of its segment).
template <class ExecutionSpace, class Kernel>
void mix_on_host(const ExecutionSpace& instance, const slice& window, std::size_t n, const double* weights,
                 const Kernel& kernel) {
  const auto table = tiles_of(window, host_tile_length);
  for_each_on_host(instance, "adasum::mix", table.size(), [=, tiles = table.data()](std::size_t t) {
    kernel(window_of(window, tiles[t]), weights + tiles[t].segment * n);
  });
  instance.fence();
}

template <scalar T, class ExecutionSpace>
void mix_by_teams(const ExecutionSpace& instance, workspace<ExecutionSpace>& memory, const slice& window,
                  std::span<const T* const> vectors, const double* weights, T* out) {
  const auto table = tiles_of(window, team_tile_length);
  if (table.empty()) return;
  const auto n = vectors.size();
  const auto addresses = addresses_of(vectors);
  const auto tiles = memory.upload(instance, memory.tiles, table);
  const auto pointers = memory.upload(instance, memory.addresses, addresses);
  const auto weight =
      memory.upload(instance, memory.numbers, std::span<const double>(weights, window.segments.size() * n));
  Kokkos::parallel_for(
      "adasum::mix", teams(instance, table.size()), KOKKOS_LAMBDA(const team_member<ExecutionSpace>& team) {
        const tile one = tiles(static_cast<std::size_t>(team.league_rank()));
        const int length = static_cast<int>(one.end - one.begin);
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, length), [&](const int x) {
          const auto element = one.begin + static_cast<std::size_t>(x);
          double sum = 0;
          for (std::size_t i = 0; i < n; ++i) {
            const double w = weight(one.segment * n + i);
            if (w != 0) sum += w * to_double(element_of<T>(pointers(i), element));
          }
          out[element] = from_double<T>(sum);
        });
      });
  instance.fence();
}

/// to[x] = from[x], of one element type or rounded to nearest even.
template <scalar From, scalar To, class ExecutionSpace>
void copy_on_host(const ExecutionSpace& instance, const serial_space& serial, const From* from, To* to,
                  std::size_t count) {
  for_each_on_host(instance, "adasum::copy", (count + host_tile_length - 1) / host_tile_length, [=](std::size_t t) {
    const auto begin = t * host_tile_length;
    serial.copy(from + begin, to + begin, std::min(host_tile_length, count - begin));
  });
  instance.fence();
}

template <scalar To, scalar From>
KOKKOS_INLINE_FUNCTION To converted(const From& from) {
  if constexpr (std::is_same_v<From, To>)
    return from;
  else
    return from_double<To>(to_double(from));
}

/// to[x] = from[x] on a device, only enqueued.
template <scalar From, scalar To, class ExecutionSpace>
void copy_on_device(const ExecutionSpace& instance, const From* from, To* to, std::size_t count) {
  if (count == 0) return;
  Kokkos::parallel_for(
      "adasum::copy", Kokkos::RangePolicy<ExecutionSpace>(instance, 0, count),
      KOKKOS_LAMBDA(const std::size_t x) { to[x] = converted<To>(from[x]); });
}

}  // namespace adasum::detail::kokkos
