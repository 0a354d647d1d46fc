// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "../../schedule/machine.hpp"

/// From measured times of exchanges to the constants of machine::link.
namespace adasum::detail {

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

}  // namespace adasum::detail
