// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/gram.hpp"
#include "../../core/scalar.hpp"
#include "../../core/segments.hpp"
#include "../../core/tiles.hpp"
#include "elements.hpp"

namespace adasum::kokkos {

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

/// A pointer is no element of a view: View<T**> has two dimensions.
struct vector_address {
  const void* elements;
};
template <class T>
KOKKOS_INLINE_FUNCTION const T& element_of(const vector_address& vector, std::size_t x) {
  return static_cast<const T*>(vector.elements)[x];
}

}  // namespace adasum::kokkos

template <std::size_t Count>
struct Kokkos::reduction_identity<adasum::kokkos::sums<Count>> {
  KOKKOS_FORCEINLINE_FUNCTION static adasum::kokkos::sums<Count> sum() { return {}; }
};

namespace adasum::kokkos {

/// Kernels for execution spaces whose memory the host does not work on (Kokkos::Cuda, HIP, SYCL): a team of threads for
/// each tile, one kernel each for measure, for the sums over tiles and for mix, whatever the number of segments.
/// Computes in double. Sums are made in an order that is fixed for a given device and version of Kokkos, which chooses
/// the size of teams. Copies share memory that they work in: one host thread at a time.
template <class ExecutionSpace>
class team_kernels {
 public:
  using memory_space = typename ExecutionSpace::memory_space;
  using member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  static constexpr bool on_host = false;
  static std::string_view arithmetic() { return "teams"; }

  /// Returns when gram, an array of the host, is there.
  template <scalar T>
  void measure(const ExecutionSpace& instance, const slice& window, std::span<const T* const> vectors,
               double* gram) const {
    const auto n = vectors.size(), entries = packed_size(n), segments = window.segments.size();
    const auto table = tiles_of(window, tile_length);
    const auto first = first_tiles(table, segments);
    const auto addresses = addresses_of(vectors);

    auto& room = *rooms_;
    const auto tiles = uploaded(instance, room.tiles, std::span(table));
    const auto first_tile = uploaded(instance, room.first_tile, std::span(first));
    const auto pointers = uploaded(instance, room.addresses, std::span(addresses));
    const auto count = table.size();
    const auto partials = room.at_least(room.partials, entries * count),
               sums = room.at_least(room.sums, entries * segments);
    if (n <= 2)
      measure_tiles<2, T>(instance, tiles, count, pointers, n, partials);
    else
      measure_tiles<4, T>(instance, tiles, count, pointers, n, partials);
    if (segments > 0)
      Kokkos::parallel_for(
          "adasum::add_tiles", policy(instance, segments * entries), KOKKOS_LAMBDA(const member& team) {
            const auto at = static_cast<std::size_t>(team.league_rank()), k = at / entries, p = at % entries;
            double sum = 0;
            Kokkos::parallel_reduce(
                Kokkos::TeamThreadRange(team, static_cast<int>(first_tile(k + 1) - first_tile(k))),
                [&](const int t, double& mine) {
                  mine += partials(p * count + first_tile(k) + static_cast<std::size_t>(t));
                },
                sum);
            Kokkos::single(Kokkos::PerTeam(team), [&] { sums(at) = sum; });
          });
    Kokkos::deep_copy(instance, on_the_host(gram, segments * entries), first_of(sums, segments * entries));
    instance.fence();  // also for the host's arrays
  }

  /// Returns when the host's arrays have been read.
  template <scalar T>
  void mix(const ExecutionSpace& instance, const slice& window, std::span<const T* const> vectors,
           const double* weights, T* out) const {
    const auto table = tiles_of(window, tile_length);
    if (table.empty()) return;
    const auto n = vectors.size();
    const auto addresses = addresses_of(vectors);
    auto& room = *rooms_;
    const auto tiles = uploaded(instance, room.tiles, std::span(table));
    const auto pointers = uploaded(instance, room.addresses, std::span(addresses));
    const auto weight = uploaded(instance, room.sums, std::span(weights, window.segments.size() * n));
    Kokkos::parallel_for(
        "adasum::mix", policy(instance, table.size()), KOKKOS_LAMBDA(const member& team) {
          const tile one = tiles(static_cast<std::size_t>(team.league_rank()));
          const int length = static_cast<int>(one.end - one.begin);
          Kokkos::parallel_for(Kokkos::TeamThreadRange(team, length), [&](const int x) {
            double sum = 0;
            for (std::size_t i = 0; i < n; ++i) {
              const double w = weight(one.segment * n + i);
              if (w != 0) sum += w * widen(element_of<T>(pointers(i), one.begin + static_cast<std::size_t>(x)));
            }
            narrow(sum, out[one.begin + static_cast<std::size_t>(x)]);
          });
        });
    instance.fence();
  }

  /// Of one element type, or rounded to nearest even.
  template <scalar From, scalar To>
  void copy(const ExecutionSpace& instance, const From* from, To* to, std::size_t count) const {
    Kokkos::parallel_for(
        "adasum::copy", Kokkos::RangePolicy<ExecutionSpace>(instance, 0, count),
        KOKKOS_LAMBDA(const std::size_t x) { assign(from[x], to[x]); });
  }

  /// partials[p·tiles + t] is entry p of tile t. The matrix is made in blocks of Width × Width.
  /// (Public, since nvcc takes no device lambda in a private function.)
  template <std::size_t Width, scalar T, class Tiles, class Pointers, class Partials>
  static void measure_tiles(const ExecutionSpace& instance, const Tiles& tiles, std::size_t count,
                            const Pointers& vectors, std::size_t n, const Partials& partials) {
    if (count == 0) return;
    Kokkos::parallel_for(
        "adasum::measure", policy(instance, count), KOKKOS_LAMBDA(const member& team) {
          const auto t = static_cast<std::size_t>(team.league_rank());
          const tile one = tiles(t);
          const int length = static_cast<int>(one.end - one.begin);
          for (std::size_t i0 = 0; i0 < n; i0 += Width)
            for (std::size_t j0 = 0; j0 <= i0; j0 += Width) {
              sums<Width * Width> total;
              Kokkos::parallel_reduce(
                  Kokkos::TeamThreadRange(team, length),
                  [&](const int x, sums<Width * Width>& mine) {
                    double a[Width], b[Width];
                    for (std::size_t v = 0; v < Width; ++v) {
                      const std::size_t i = i0 + v, j = j0 + v;
                      a[v] = i < n ? widen(element_of<T>(vectors(i), one.begin + static_cast<std::size_t>(x))) : 0;
                      b[v] = j < n ? widen(element_of<T>(vectors(j), one.begin + static_cast<std::size_t>(x))) : 0;
                    }
                    for (std::size_t v = 0; v < Width; ++v)
                      for (std::size_t w = 0; w < Width; ++w) mine.at[v * Width + w] += a[v] * b[w];
                    // A vector that is not zero has no zero square, even if each of its elements' squares underflows.
                    if (i0 == j0)
                      for (std::size_t v = 0; v < Width; ++v)
                        if (a[v] != 0 && mine.at[v * Width + v] == 0) mine.at[v * Width + v] = 0x1p-1074;
                  },
                  Kokkos::Sum<sums<Width * Width>>(total));
              Kokkos::single(Kokkos::PerTeam(team), [&] {
                for (std::size_t v = 0; v < Width && i0 + v < n; ++v)
                  for (std::size_t w = 0; w < Width && j0 + w <= i0 + v; ++w)
                    partials(packed_index(i0 + v, j0 + w) * count + t) = total.at[v * Width + w];
              });
            }
        });
  }

 private:
  template <class Element>
  using device_view = Kokkos::View<Element*, memory_space>;

  /// Kept between calls: to free memory of a device, Kokkos waits for all of it.
  struct rooms {
    device_view<tile> tiles;
    device_view<std::size_t> first_tile;
    device_view<vector_address> addresses;
    device_view<double> partials, sums;

    template <class Element>
    static device_view<Element> at_least(device_view<Element>& room, std::size_t count) {
      if (room.extent(0) < count)
        room = device_view<Element>(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("adasum")), 2 * count);
      return room;
    }
  };

  static auto policy(const ExecutionSpace& instance, std::size_t teams) {
    return Kokkos::TeamPolicy<ExecutionSpace>(instance, static_cast<int>(teams), Kokkos::AUTO);
  }
  template <class Element>
  static auto on_the_host(Element* elements, std::size_t count) {
    return Kokkos::View<Element*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(elements, count);
  }
  template <class Element>
  static auto first_of(const device_view<Element>& room, std::size_t count) {
    return Kokkos::View<Element*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(room.data(), count);
  }
  /// `values` must stay until the instance has been fenced.
  template <class Element, class Values>
  static device_view<Element> uploaded(const ExecutionSpace& instance, device_view<Element>& room, Values values) {
    const auto all = rooms::at_least(room, values.size());
    if (!values.empty())
      Kokkos::deep_copy(instance, first_of(all, values.size()),
                        on_the_host<const Element>(values.data(), values.size()));
    return all;
  }
  template <class T>
  static std::vector<vector_address> addresses_of(std::span<const T* const> vectors) {
    std::vector<vector_address> addresses;
    for (const T* const vector : vectors) addresses.push_back({vector});
    return addresses;
  }

  /// Elements of the longest tile: each of a team's threads, some hundreds, gets some tens of them.
  static constexpr std::size_t tile_length = std::size_t{1} << 13;

  std::shared_ptr<rooms> rooms_ = std::make_shared<rooms>();
};

}  // namespace adasum::kokkos
