// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "../../core/message.hpp"
#include "../../schedule/machine.hpp"
#include "../local/kernel_times.hpp"
#include "lasting_exchanges.hpp"
#include "link_fit.hpp"

namespace adasum::detail {

/// What a rank tells all others (lasting_exchanges::gather).
template <class Value>
struct block_of {
  std::uint64_t is_there = 0;
  Value value{};
};

/// A rank's neighbours in a ring of ranks; none for a rank that is alone, or in no ring.
struct ring_neighbours {
  int next = -1, last = -1;
  ring_neighbours(std::span<const int> ring, int rank) {
    const auto count = ring.size();
    for (std::size_t i = 0; count > 1 && i < count; ++i)
      if (ring[i] == rank) {
        next = ring[(i + 1) % count];
        last = ring[(i + count - 1) % count];
      }
  }
  bool exist() const { return next >= 0; }
};

/// Measures exchanges in a ring: for each length the least of several rounds.
/// @param ring     ranks; one alone measures nothing
/// @param from, to  memory of the space for the longest message; the same on all ranks
template <class Exchanges>
link_times time_ring(Exchanges& exchanges, std::span<const int> ring, int rank, std::byte* from, std::byte* to,
                     std::size_t longest) {
  link_times found;
  const ring_neighbours beside(ring, rank);
  if (!beside.exist()) return found;
  const auto seconds_of = [&](std::size_t bytes, std::size_t messages, std::size_t runs) {
    constexpr std::size_t rounds = 7;
    return least_of<rounds>([&] {
      const double start = seconds_now();
      for (std::size_t i = 0; i < runs; ++i) {
        exchanges.make([&](auto& out, auto& in) {
          for (std::size_t k = 0; k < messages; ++k) {
            out.push_back({beside.next, {from + k * bytes, bytes}, memory_kind::space});
            in.push_back({beside.last, {to + k * bytes, bytes}, memory_kind::space});
          }
        });
        std::swap(from, to);  // as in a reduction, what is sent was written a moment ago: it lies in this core's caches
      }
      return (seconds_now() - start) / static_cast<double>(runs);
    });
  };
  for (std::size_t i = 0; i < timed_lengths.size(); ++i)
    if (const auto [bytes, runs] = timed_lengths[i]; bytes <= longest) found.one[i] = seconds_of(bytes, 1, runs);
  found.many = seconds_of(timed_lengths[0].bytes, timed_together, timed_lengths[0].runs);
  return found;
}

/// Seconds for an element of two vectors, of which one has just been received, and the other, which is overwritten, read by
/// another rank: cores then fetch from each other what they would otherwise have in their caches.
/// @param from, to  vectors of the longest length
template <class Exchanges, class T, class Space>
std::array<double, schedules::rate::lengths.size()> time_pairs(Exchanges& exchanges, const Space& space,
                                                               std::span<const int> ring, int rank, T* from, T* to,
                                                               std::size_t longest) {
  constexpr std::size_t rounds = 7;
  std::array<double, schedules::rate::lengths.size()> found{};
  const ring_neighbours beside(ring, rank);
  for (std::size_t i = 0; i < found.size() && beside.exist(); ++i) {
    const auto bytes = schedules::rate::lengths[i], elements = bytes / sizeof(T);
    if (bytes > longest) break;
    found[i] = least_of<rounds>([&] {
                 exchanges.make([&](auto& out, auto& in) {
                   out.push_back({beside.next, std::as_bytes(std::span(from, elements)), memory_kind::space});
                   in.push_back({beside.last, std::as_writable_bytes(std::span(to, elements)), memory_kind::space});
                 });
                 double seconds = 0;
                 exchanges.attempt_alone([&] {
                   const std::array<const T*, 2> pair{from, to};
                   seconds = seconds_of_kernels(space, std::span<const T* const>(pair), elements, true, from);
                 });
                 return seconds;
               }) /
               static_cast<double>(elements);
  }
  return found;
}

}  // namespace adasum::detail
