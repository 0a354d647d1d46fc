// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/gram.hpp"
#include "../../core/message.hpp"
#include "../../core/segments.hpp"
#include "../../schedules/cheapest.hpp"
#include "../../schedules/cost.hpp"
#include "../../schedules/machine.hpp"
#include "lasting_exchanges.hpp"

/// What ranks measure, and how the constants of schedules::machine follow from that.
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

/// What is measured of a link: exchanges of one message each way of these lengths, so many of them between two looks at the
/// clock.
struct timed_length {
  std::size_t bytes, runs;
};
inline constexpr std::array<timed_length, 13> timed_lengths{{{64, 16},
                                                             {512, 16},
                                                             {1 << 10, 16},
                                                             {2 << 10, 16},
                                                             {4 << 10, 16},
                                                             {8 << 10, 8},
                                                             {16 << 10, 8},
                                                             {32 << 10, 8},
                                                             {64 << 10, 4},
                                                             {256 << 10, 2},
                                                             {1 << 20, 1},
                                                             {4 << 20, 1},
                                                             {16 << 20, 1}}};
/// The last ones are the lengths of schedules::rate; a model of exchanges is fitted to those up to the first of these.
inline constexpr std::size_t fitted_lengths = timed_lengths.size() - schedules::rate::lengths.size() + 1;
/// So many of the shortest, too, each way.
inline constexpr std::size_t timed_together = 8;

/// Seconds of exchanges; 0 for what was not measured.
struct link_times {
  std::array<double, timed_lengths.size()> one{};  ///< message each way
  double many = 0;                                 ///< of the shortest
};

/// Seconds of an exchange of one message each way: latency and message, then for each byte, then for a message that is long.
struct exchange_model {
  double constant = 0, per_byte = 0, handshake = 0;
  std::size_t first_long = 0;  ///< the place, among the measured lengths, of the first that is long
  double error = 0;            ///< Σ of squared relative errors
};

/// The least Σ (1 - model/measured)² over the constants, by the normal equations.
/// @param first_long  fitted_lengths: no message is long
/// @return nothing if a constant would not be positive
inline std::optional<exchange_model> fit_exchange(const link_times& measured, std::size_t first_long) {
  const std::size_t unknowns = first_long < fitted_lengths ? 3 : 2;
  const auto row = [&](std::size_t i) {
    const double seconds = measured.one[i];
    return std::array<double, 3>{1 / seconds, static_cast<double>(timed_lengths[i].bytes) / seconds,
                                 i < first_long ? 0 : 1 / seconds};
  };
  std::array<std::array<double, 4>, 3> system{};  // the right-hand sides are in the last column
  for (std::size_t i = 0; i < fitted_lengths; ++i)
    for (std::size_t x = 0; x < unknowns; ++x) {
      for (std::size_t y = 0; y < unknowns; ++y) system[x][y] += row(i)[x] * row(i)[y];
      system[x][3] += row(i)[x];
    }
  for (std::size_t x = 0; x < unknowns; ++x)  // symmetric, positive definite: no row need be exchanged
    for (std::size_t other = 0; other < unknowns; ++other) {
      if (other == x) continue;
      const double factor = system[other][x] / system[x][x];
      for (std::size_t y = 0; y < 4; ++y) system[other][y] -= factor * system[x][y];
    }
  exchange_model found{system[0][3] / system[0][0], system[1][3] / system[1][1],
                       unknowns == 3 ? system[2][3] / system[2][2] : 0, first_long};
  if (!(found.constant > 0 && found.per_byte > 0 && found.handshake >= 0)) return {};
  for (std::size_t i = 0; i < fitted_lengths; ++i) {
    const auto terms = row(i);
    const double off = 1 - (found.constant * terms[0] + found.per_byte * terms[1] + found.handshake * terms[2]);
    found.error += off * off;
  }
  return found;
}

/// The constants of the model that fits best; what exchanges of longer messages take beside that is for their bytes.
inline schedules::machine::link fit_link(const link_times& measured) {
  constexpr double least = 1e-10, least_per_byte = 1e-14;  // positive, where noise would say otherwise
  const auto& seconds = measured.one;
  const auto slope = (seconds[fitted_lengths - 1] - seconds[0]) / static_cast<double>(schedules::rate::lengths[0]);
  exchange_model best{std::max(seconds[0], least), std::max(slope, least_per_byte), 0, fitted_lengths, 1e300};
  for (std::size_t first_long = 2; first_long <= fitted_lengths; ++first_long)
    if (first_long + 1 != fitted_lengths)  // one long message says nothing of its bytes
      if (const auto found = fit_exchange(measured, first_long); found && found->error < best.error) best = *found;

  schedules::machine::link link{.per_byte = best.per_byte, .handshake = best.handshake};
  auto& rates = link.per_byte.at;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    const double for_bytes = seconds[fitted_lengths - 1 + i] - best.constant - best.handshake;
    rates[i] = seconds[fitted_lengths - 1 + i] > 0
                   ? std::max(for_bytes / static_cast<double>(schedules::rate::lengths[i]), least_per_byte)
                   : rates[i - 1];
  }
  link.per_message = std::clamp((measured.many - seconds[0]) / static_cast<double>(timed_together - 1), least,
                                std::max(best.constant / 2, least));
  link.latency = std::max(best.constant - link.per_message, least);
  // The limit lies somewhere between two of the lengths. Not at the first of them: what gradients of so many bytes send is a
  // little longer, by what is known of them.
  if (best.handshake > 0)
    link.eager_bytes =
        static_cast<double>(timed_lengths[best.first_long - 1].bytes + timed_lengths[best.first_long].bytes) / 2;
  return link;
}

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
inline link_times time_ring(lasting_exchanges& exchanges, std::span<const int> ring, int rank, std::byte* from,
                            std::byte* to, std::size_t longest) {
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
template <class T, class Space>
std::array<double, schedules::rate::lengths.size()> time_pairs(lasting_exchanges& exchanges, const Space& space,
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

/// Seconds on one rank; 0 for what it did not measure. Nothing but doubles.
struct machine_times {
  static constexpr std::size_t rates = schedules::rate::lengths.size();
  static constexpr std::size_t short_length = 64;  ///< elements of a short gradient
  link_times across{}, inside{};
  double barrier = 0;                    ///< a short gradient in shared memory
  std::array<double, rates> in_place{};  ///< gradients of schedules::rate::lengths there
  std::array<kernel_times, rates> kernels{};

  /// The slowest rank decides how long a reduction takes.
  void take_slower(const machine_times& other) {
    using numbers = std::array<double, sizeof(machine_times) / sizeof(double)>;
    auto mine = std::bit_cast<numbers>(*this);
    const auto theirs = std::bit_cast<numbers>(other);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
    *this = std::bit_cast<machine_times>(mine);
  }
};

/// The constants of memory that ranks share which explain these times.
/// @param on            the other constants
/// @param element_size  of the gradients there
inline schedules::machine::shared_memory shared_from(const machine_times& times, schedules::machine on, int size,
                                                     std::size_t element_size) {
  if (times.barrier <= 0) return on.shared;
  const auto cost_of = [&](std::size_t length) {
    const schedule_input what{.length = length, .element_size = element_size};
    return schedules::in_place_cost(size, what, levels_in_place(size, what));
  };
  on.shared.barrier = times.barrier / static_cast<double>(cost_of(machine_times::short_length).barriers);
  on.shared.per_byte = 0;
  schedules::rate found;
  for (std::size_t i = 0; i < machine_times::rates; ++i) {
    constexpr double least = 1e-14;
    const auto what = cost_of(schedules::rate::lengths[i] / element_size);
    const double for_bytes = times.in_place[i] - seconds(what, on);
    found.at[i] = times.in_place[i] > 0 ? std::max(for_bytes / static_cast<double>(what.bytes), least)
                  : i > 0               ? found.at[i - 1]
                                        : least;
  }
  return {on.shared.barrier, found};
}

/// The constants that explain these times.
/// @param element_size  of the gradients in shared memory
inline schedules::machine machine_from(const machine_times& times, int size, std::size_t element_size) {
  schedules::machine found;
  for (std::size_t i = 0; i < machine_times::rates; ++i) {
    const auto& kernels = times.kernels[times.kernels[i].term > 0 ? i : 0];
    found.per_pair_element.at[i] = kernels.pair_element;
    found.per_product.at[i] = kernels.product;
    found.per_term.at[i] = kernels.term;
  }
  // Where only one kind of link was measured, it stands for both.
  const bool has_across = times.across.many > 0, has_inside = times.inside.many > 0;
  if (has_across || has_inside) {
    found.across = fit_link(has_across ? times.across : times.inside);
    found.inside = fit_link(has_inside ? times.inside : times.across);
  }
  found.shared = shared_from(times, found, size, element_size);
  return found;
}

}  // namespace adasum::detail
