// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "../../schedule/cheapest.hpp"
#include "../../schedule/in_place_cost.hpp"
#include "../../schedule/machine.hpp"
#include "../local/kernel_times.hpp"
#include "link_fit.hpp"
#include "timed_exchanges.hpp"

/// From what ranks have measured to the constants of schedules::machine.
namespace adasum::detail {

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
