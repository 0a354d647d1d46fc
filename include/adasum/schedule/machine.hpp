// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../core/float_bits.hpp"

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

  /// For a gradient of so many bytes.
  constexpr double of(std::size_t bytes) const {
    if (bytes <= lengths.front()) return at.front();
    std::size_t i = 1;
    while (i < lengths.size() && lengths[i] < bytes) ++i;
    if (i == lengths.size()) return at.back();
    const auto share = static_cast<double>(bytes - lengths[i - 1]) / static_cast<double>(lengths[i] - lengths[i - 1]);
    return at[i - 1] + share * (at[i] - at[i - 1]);
  }
  friend constexpr bool operator==(const rate&, const rate&) = default;
};

/// A network, nodes, and a processor, as constants of the model of cost.hpp. The defaults are those of docs/scale.md:
/// InfiniBand of 100 Gb/s, messages inside a node that are copied twice, and serial_space's kernels for floats as bench/scale
/// measured them on one core of an AMD EPYC (Zen 5). adasum::measure_machine measures them; see docs/tuning.md. Which
/// schedule is the cheapest depends on the ratios only.
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

  rate per_pair_element = 0.13e-9;  ///< seconds to measure and mix an element of a pair; 0.09 in the caches, 0.26 in memory
  rate per_product = 0.017e-9;      ///< seconds for a multiply-add of an inner product
  rate per_term = 0.04e-9;          ///< seconds for a multiply-add of a combination; 0.03 in the caches, up to 0.1 in memory

  friend constexpr bool operator==(const machine&, const machine&) = default;
};

/// visit(name, numbers) for each constant: a span of one number, or of as many as a rate has.
/// @param on  a machine, const or not
template <class Machine, class Visitor>
void for_each_constant(Machine& on, Visitor&& visit) {
  const auto number = [&](const std::string& name, auto& one) { visit(name, std::span(&one, 1)); };
  const auto numbers = [&](const std::string& name, auto& one) { visit(name, std::span(one.at)); };
  const auto link = [&](const std::string& name, auto& one) {
    number(name + ".latency", one.latency);
    number(name + ".per_message", one.per_message);
    numbers(name + ".per_byte", one.per_byte);
    number(name + ".eager_bytes", one.eager_bytes);
    number(name + ".handshake", one.handshake);
  };
  link("across", on.across);
  link("inside", on.inside);
  number("shared.barrier", on.shared.barrier);
  numbers("shared.per_byte", on.shared.per_byte);
  numbers("per_pair_element", on.per_pair_element);
  numbers("per_product", on.per_product);
  numbers("per_term", on.per_term);
}

/// All constants, in the order of for_each_constant.
inline std::vector<double> constants_of(const machine& on) {
  std::vector<double> all;
  for_each_constant(on, [&](const std::string&, std::span<const double> numbers) {
    all.insert(all.end(), numbers.begin(), numbers.end());
  });
  return all;
}

/// Whether a number can be a constant: finite, and not negative.
constexpr bool is_constant(double value) { return adasum::detail::is_finite(value) && value >= 0; }

/// The name of the first constant that cannot be one; empty if there is none.
inline std::string bad_constant_of(const machine& on) {
  std::string bad;
  for_each_constant(on, [&](const std::string& name, std::span<const double> numbers) {
    if (bad.empty() && !std::ranges::all_of(numbers, is_constant)) bad = name;
  });
  return bad;
}

}  // namespace adasum::schedules
