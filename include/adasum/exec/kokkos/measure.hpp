// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/scalar_value.hpp"
#include "../../core/segments.hpp"
#include "../serial.hpp"
#include "../tiles.hpp"
#include "elements.hpp"
#include "workspace.hpp"

/// Gram matrices, two kernels whatever the number of segments: partial sums of each tile, and their sums in the order
/// of the tiles. All functions return when gram, an array of the host, is there.
namespace adasum::detail::kokkos {

/// By the threads of the host. The same bits whatever their number.
/// @param measure_tile  measure_tile(window, gram): measures one tile
template <class ExecutionSpace, class MeasureTile>
void measure_on_host(const ExecutionSpace& instance, const slice& window, std::size_t n, double* gram,
                     const MeasureTile& measure_tile) {
  const auto packed = packed_size(n);
  const auto table = tiles_of(window, host_tile_length);
  std::vector<double> partials(table.size() * packed);
  for_each_on_host(instance, "adasum::measure", table.size(),
                   [&, tiles = table.data(), partials = partials.data()](std::size_t t) {
                     measure_tile(window_of(window, tiles[t]), partials + t * packed);
                   });
  instance.fence();
  std::fill_n(gram, window.segments.size() * packed, 0.0);
  for (std::size_t t = 0; t < table.size(); ++t)
    for (std::size_t p = 0; p < packed; ++p) gram[table[t].segment * packed + p] += partials[t * packed + p];
}

/// Inner products that are reduced together.
template <std::size_t Count>
struct sums {
  double at[Count];

  KOKKOS_INLINE_FUNCTION sums() {
    for (double& one : at) one = 0;
  }
  KOKKOS_INLINE_FUNCTION sums& operator+=(const sums& other) {
    for (std::size_t p = 0; p < Count; ++p) at[p] += other.at[p];
    return *this;
  }
};

}  // namespace adasum::detail::kokkos

template <std::size_t Count>
struct Kokkos::reduction_identity<adasum::detail::kokkos::sums<Count>> {
  KOKKOS_FORCEINLINE_FUNCTION static adasum::detail::kokkos::sums<Count> sum() { return {}; }
};

namespace adasum::detail::kokkos {

/// partials[p·count + t] is entry p of tile t. The matrix is made in blocks of Width × Width.
template <std::size_t Width, scalar T, class ExecutionSpace, class Tiles, class Addresses, class Partials>
void measure_tiles(const ExecutionSpace& instance, const Tiles& tiles, std::size_t count, const Addresses& vectors,
                   std::size_t n, const Partials& partials) {
  if (count == 0) return;
  using block = sums<Width * Width>;
  Kokkos::parallel_for(
      "adasum::measure", teams(instance, count), KOKKOS_LAMBDA(const team_member<ExecutionSpace>& team) {
        const auto t = static_cast<std::size_t>(team.league_rank());
        const tile one = tiles(t);
        const int length = static_cast<int>(one.end - one.begin);
        for (std::size_t i0 = 0; i0 < n; i0 += Width)
          for (std::size_t j0 = 0; j0 <= i0; j0 += Width) {
            block total;
            Kokkos::parallel_reduce(
                Kokkos::TeamThreadRange(team, length),
                [&](const int x, block& mine) {
                  const auto element = one.begin + static_cast<std::size_t>(x);
                  double a[Width], b[Width];
                  for (std::size_t v = 0; v < Width; ++v) {
                    const std::size_t i = i0 + v, j = j0 + v;
                    a[v] = i < n ? to_double(element_of<T>(vectors(i), element)) : 0;
                    b[v] = j < n ? to_double(element_of<T>(vectors(j), element)) : 0;
                  }
                  for (std::size_t v = 0; v < Width; ++v)
                    for (std::size_t w = 0; w < Width; ++w) mine.at[v * Width + w] += a[v] * b[w];
                  // A vector that is not zero has no zero square, even if each of its elements' squares underflows.
                  if (i0 == j0)
                    for (std::size_t v = 0; v < Width; ++v)
                      if (a[v] != 0 && mine.at[v * Width + v] == 0) mine.at[v * Width + v] = 0x1p-1074;
                },
                Kokkos::Sum<block>(total));
            Kokkos::single(Kokkos::PerTeam(team), [&] {
              for (std::size_t v = 0; v < Width && i0 + v < n; ++v)
                for (std::size_t w = 0; w < Width && j0 + w <= i0 + v; ++w)
                  partials(packed_index(i0 + v, j0 + w) * count + t) = total.at[v * Width + w];
            });
          }
      });
}

/// gram[k·entries + p] = Σ partials[p·count + t] over the tiles t of segment k; 0 for a segment that has none.
template <class ExecutionSpace, class Partials, class FirstTile, class Gram>
void add_tiles(const ExecutionSpace& instance, const Partials& partials, std::size_t count, const FirstTile& first_tile,
               std::size_t segments, std::size_t entries, const Gram& gram) {
  if (segments == 0) return;
  Kokkos::parallel_for(
      "adasum::add_tiles", teams(instance, segments * entries), KOKKOS_LAMBDA(const team_member<ExecutionSpace>& team) {
        const auto at = static_cast<std::size_t>(team.league_rank()), k = at / entries, p = at % entries;
        double sum = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, static_cast<int>(first_tile(k + 1) - first_tile(k))),
            [&](const int t, double& mine) {
              mine += partials(p * count + first_tile(k) + static_cast<std::size_t>(t));
            },
            sum);
        Kokkos::single(Kokkos::PerTeam(team), [&] { gram(at) = sum; });
      });
}

/// By teams of threads, on a device. Computes in double. The order of additions is fixed for a given device and version
/// of Kokkos, which chooses the size of teams.
template <scalar T, class ExecutionSpace>
void measure_by_teams(const ExecutionSpace& instance, workspace<ExecutionSpace>& memory, const slice& window,
                      std::span<const T* const> vectors, double* gram) {
  const auto n = vectors.size(), entries = packed_size(n), segments = window.segments.size();
  const auto table = tiles_of(window, team_tile_length);
  const auto first = first_tiles(table, segments);
  const auto addresses = addresses_of(vectors);
  const auto tiles = memory.upload(instance, memory.tiles, table);
  const auto first_tile = memory.upload(instance, memory.first_tile, first);
  const auto pointers = memory.upload(instance, memory.addresses, addresses);
  const auto partials = memory.at_least(memory.partials, entries * table.size());
  const auto totals = memory.at_least(memory.numbers, entries * segments);
  if (n <= 2)
    measure_tiles<2, T>(instance, tiles, table.size(), pointers, n, partials);
  else
    measure_tiles<4, T>(instance, tiles, table.size(), pointers, n, partials);
  add_tiles(instance, partials, table.size(), first_tile, segments, entries, totals);
  memory.download(instance, totals, gram, segments * entries);
  instance.fence();  // also for the host's arrays
}

}  // namespace adasum::detail::kokkos
