// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <string>

#include "../core/scalar.hpp"

namespace adasum::schedules {

/// Seconds for a byte, or for an element, which depend on whether the data are in the caches: for gradients of up to 256 KiB,
/// and of 1, 4 and 16 MiB. In between, they lie on a straight line.
struct rate {
  /// The bytes of a gradient to which the four numbers belong.
  static constexpr std::array<std::size_t, 4> lengths{std::size_t{256} << 10, std::size_t{1} << 20,
                                                      std::size_t{4} << 20, std::size_t{16} << 20};
  /// Seconds for each of these lengths.
  std::array<double, lengths.size()> at{};

  /// Zero.
  constexpr rate() = default;
  /// The same for all lengths.
  constexpr rate(double always) { at.fill(always); }
  /// One for each of the lengths.
  constexpr rate(std::array<double, lengths.size()> each) : at(each) {}

  /// Between which two of these a length lies, and how far behind the first, as a share of the way to the second.
  struct place {
    std::size_t below = 0;  ///< which of them is the first
    std::size_t above = 0;  ///< and the second; the same at either end
    double share = 0;       ///< from 0 to 1
  };
  /// Of a gradient of so many bytes.
  static constexpr place place_of(std::size_t bytes) {
    std::size_t i = 0;
    while (i < lengths.size() && lengths[i] < bytes) ++i;
    if (i == 0) return {};
    if (i == lengths.size()) return {i - 1, i - 1, 0};
    return {i - 1, i, static_cast<double>(bytes - lengths[i - 1]) / static_cast<double>(lengths[i] - lengths[i - 1])};
  }
  /// For a gradient of a length at this place.
  constexpr double of(place length) const {
    return at[length.below] + length.share * (at[length.above] - at[length.below]);
  }
  /// For a gradient of so many bytes.
  constexpr double of(std::size_t bytes) const { return of(place_of(bytes)); }
  friend constexpr bool operator==(const rate&, const rate&) = default;
};

/// A network, nodes, and a processor, as constants of the model of cost.hpp. The defaults are those of docs/scale.md:
/// InfiniBand of 100 Gb/s, messages inside a node that are copied twice, and serial_space's kernels for floats as bench/scale
/// measured them on one core of an AMD EPYC (Zen 5). (Between nodes, schedules::automatic without a machine takes another
/// network: detail::usual_cluster.) adasum::measure_machine measures them; see docs/tuning.md. Which schedule is the cheapest
/// depends on the ratios only.
struct machine {
  /// Between two ranks. An exchange of messages takes
  ///
  ///     latency + messages · per_message + bytes · per_byte (+ handshake, if one has more than eager_bytes)
  ///
  /// seconds (LogGPS: Ino, Fujimoto, Hagihara, 2001; MPI libraries send long messages only once the receiver is ready).
  struct link {
    double latency = 1e-6;      ///< seconds from rank to rank
    double per_message = 2e-7;  ///< seconds of processors, its sender's and its receiver's, for one message
    rate per_byte = 0.08e-9;    ///< seconds, the inverse of the bandwidth
    double eager_bytes = 0;     ///< the longest message that is sent at once
    double handshake = 0;       ///< seconds
    friend constexpr bool operator==(const link&, const link&) = default;
  };
  link across{};  ///< between nodes; for all messages where schedules are told no nodes
  /// Between ranks of one node: by default 0.3 µs, 0.2 µs a message, and 10 GB/s.
  link inside{.latency = 0.3e-6, .per_message = 2e-7, .per_byte = 0.1e-9};

  /// Where the ranks of one node work in memory that they share.
  struct shared_memory {
    double barrier = 0.3e-6;  ///< seconds, of one round, in which a rank hears from up to seven others
    /// Seconds for a byte that is copied there or back, or that lies with another rank when it is read or written.
    rate per_byte = std::array{0.01e-9, 0.015e-9, 0.03e-9, 0.05e-9};
    friend constexpr bool operator==(const shared_memory&, const shared_memory&) = default;
  };
  shared_memory shared{};  ///< memory that the ranks of a node share

  /// Seconds to measure and mix an element of a pair; 0.09 ns in the caches, 0.26 in memory.
  rate per_pair_element = 0.13e-9;
  rate per_product = 0.017e-9;  ///< seconds for a multiply-add of an inner product
  /// Seconds for a multiply-add of a combination; 0.03 ns in the caches, up to 0.1 in memory.
  rate per_term = 0.04e-9;

  friend constexpr bool operator==(const machine&, const machine&) = default;
};

/// The numbers of all constants, in the order of the members: a machine consists of nothing else.
using machine_numbers = std::array<double, sizeof(machine) / sizeof(double)>;
/// Of this machine. (And std::bit_cast<machine>(numbers) is the machine of these numbers.)
constexpr machine_numbers constants_of(const machine& on) { return std::bit_cast<machine_numbers>(on); }

/// One constant.
struct named_constant {
  const char* name;   ///< such as "across.latency"
  std::size_t first;  ///< where it is among machine_numbers
  std::size_t count;  ///< 1, or the numbers of a rate
};
/// All constants, in that order.
inline constexpr std::array<named_constant, 15> constant_names{{{"across.latency", 0, 1},
                                                                {"across.per_message", 1, 1},
                                                                {"across.per_byte", 2, 4},
                                                                {"across.eager_bytes", 6, 1},
                                                                {"across.handshake", 7, 1},
                                                                {"inside.latency", 8, 1},
                                                                {"inside.per_message", 9, 1},
                                                                {"inside.per_byte", 10, 4},
                                                                {"inside.eager_bytes", 14, 1},
                                                                {"inside.handshake", 15, 1},
                                                                {"shared.barrier", 16, 1},
                                                                {"shared.per_byte", 17, 4},
                                                                {"per_pair_element", 21, 4},
                                                                {"per_product", 25, 4},
                                                                {"per_term", 29, 4}}};

/// Whether a number can be a constant: finite, and not negative.
constexpr bool is_constant(double value) { return adasum::detail::is_finite(value) && value >= 0; }

/// The name of the first constant that cannot be one; empty if there is none.
std::string bad_constant_of(const machine& on);

}  // namespace adasum::schedules

#if ADASUM_DEFINITIONS

namespace adasum::schedules {

ADASUM_INLINE std::string bad_constant_of(const machine& on) {
  const auto numbers = constants_of(on);
  for (const auto& [name, first, count] : constant_names)
    for (auto i = first; i < first + count; ++i)
      if (!is_constant(numbers[i])) return name;
  return {};
}

}  // namespace adasum::schedules
#endif
