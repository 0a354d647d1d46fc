// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "../../schedule/machine.hpp"

/// From measured times of exchanges to the constants of machine::link.
namespace adasum::detail {

/// Seconds of an exchange of one message each way: latency and message, then for each byte, then for a message that is long.
struct exchange_model {
  double constant = 0, per_byte = 0, handshake = 0;
  std::size_t first_long = 0;  ///< the place, among the measured lengths, of the first that is long
  double error = 0;            ///< Σ of squared relative errors
};

/// The least Σ (1 - model/measured)² over the constants, by the normal equations.
/// @param first_long  bytes.size(): no message is long
/// @return nothing if a constant would not be positive
inline std::optional<exchange_model> fit_exchange(std::span<const std::size_t> bytes, std::span<const double> seconds,
                                                  std::size_t first_long) {
  const std::size_t unknowns = first_long < bytes.size() ? 3 : 2;
  const auto row = [&](std::size_t i) {
    return std::array<double, 3>{1 / seconds[i], static_cast<double>(bytes[i]) / seconds[i],
                                 i < first_long ? 0 : 1 / seconds[i]};
  };
  std::array<std::array<double, 4>, 3> system{};  // the right-hand sides are in the last column
  for (std::size_t i = 0; i < bytes.size(); ++i)
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
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto terms = row(i);
    const double off = 1 - (found.constant * terms[0] + found.per_byte * terms[1] + found.handshake * terms[2]);
    found.error += off * off;
  }
  return found;
}

/// The constants of the model that fits best exchanges of up to rate::lengths[0] bytes; what longer ones take beside that is
/// for their bytes.
/// @param bytes    of the one message each way, ascending, up to the last of rate::lengths; at least two before the first
/// @param seconds  of an exchange of these; 0 where it was not measured
/// @param with_many  seconds of an exchange of so many of the shortest messages each way
inline schedules::machine::link fit_link(std::span<const std::size_t> bytes, std::span<const double> seconds,
                                         double with_many, std::size_t many) {
  using schedules::rate;
  constexpr double least = 1e-10, least_per_byte = 1e-14;  // positive, where noise would say otherwise
  const auto place_of = [&](std::size_t length) {
    return static_cast<std::size_t>(std::ranges::find(bytes, length) - bytes.begin());
  };
  const auto count = place_of(rate::lengths[0]) + 1;
  const auto some = bytes.first(count);
  exchange_model best{std::max(seconds[0], least),
                      std::max((seconds[count - 1] - seconds[0]) / static_cast<double>(some.back()), least_per_byte), 0,
                      count, 1e300};
  for (std::size_t first_long = 2; first_long <= count; ++first_long)
    if (first_long + 1 != count)  // one long message says nothing of its bytes
      if (const auto found = fit_exchange(some, seconds.first(count), first_long); found && found->error < best.error)
        best = *found;

  rate per_byte = best.per_byte;
  for (std::size_t i = 1; i < per_byte.at.size(); ++i) {
    const double all = seconds[place_of(rate::lengths[i])];
    per_byte.at[i] = all > 0 ? std::max((all - best.constant - best.handshake) / static_cast<double>(rate::lengths[i]),
                                        least_per_byte)
                             : per_byte.at[i - 1];
  }
  const double per_message =
      std::clamp((with_many - seconds[0]) / static_cast<double>(many - 1), least, std::max(best.constant / 2, least));
  // The limit lies somewhere between two of the lengths. Not at the first of them: what gradients of so many bytes send is a
  // little longer, by what is known of them.
  const auto limit = [&] { return static_cast<double>(bytes[best.first_long - 1] + bytes[best.first_long]) / 2; };
  return {.latency = std::max(best.constant - per_message, least),
          .per_message = per_message,
          .per_byte = per_byte,
          .eager_bytes = best.handshake > 0 ? limit() : 0,
          .handshake = best.handshake};
}

}  // namespace adasum::detail
