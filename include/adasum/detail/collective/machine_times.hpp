// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "../../schedule/automatic.hpp"
#include "../../schedule/in_place_cost.hpp"
#include "../../schedule/machine.hpp"
#include "../local/kernel_times.hpp"
#include "link_fit.hpp"
#include "timed_exchanges.hpp"

/// From what ranks have measured to the constants of schedules::machine.
namespace adasum::detail {

/// Seconds on one rank; 0 for what it did not measure.
struct machine_times {
  static constexpr std::size_t rates = schedules::rate::lengths.size();
  static constexpr std::size_t short_length = 64;  ///< elements of a short gradient
  std::uint64_t is_there = 0;
  link_times across{}, inside{};
  double barrier = 0;                    ///< a short gradient in shared memory
  std::array<double, rates> in_place{};  ///< gradients of schedules::rate::lengths there
  std::array<kernel_times, rates> kernels{};

  /// The slowest rank decides how long a reduction takes.
  void take_slower(const machine_times& other) {
    const auto take = [](double& mine, double theirs) { mine = std::max(mine, theirs); };
    const auto take_link = [&](link_times& mine, const link_times& theirs) {
      for (std::size_t i = 0; i < mine.one.size(); ++i) take(mine.one[i], theirs.one[i]);
      take(mine.many, theirs.many);
    };
    take_link(across, other.across);
    take_link(inside, other.inside);
    take(barrier, other.barrier);
    for (std::size_t i = 0; i < rates; ++i) {
      take(in_place[i], other.in_place[i]);
      take(kernels[i].pair_element, other.kernels[i].pair_element);
      take(kernels[i].product, other.kernels[i].product);
      take(kernels[i].term, other.kernels[i].term);
    }
  }
};

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

  std::array<std::size_t, timed_lengths.size()> bytes;
  std::ranges::transform(timed_lengths, bytes.begin(), &timed_length::bytes);
  const auto link = [&](const link_times& one) { return fit_link(bytes, one.one, one.many, timed_together); };
  const bool has_across = times.across.many > 0, has_inside = times.inside.many > 0;
  if (has_across) found.across = link(times.across);
  if (has_inside) found.inside = link(times.inside);
  if (!has_across && has_inside) found.across = found.inside;
  if (!has_inside && has_across) found.inside = found.across;

  if (times.barrier > 0) {
    constexpr double least = 1e-14;
    const auto cost_of = [&](std::size_t length) {
      const schedule_input what{.length = length, .element_size = element_size};
      return schedules::in_place_cost(size, what, schedules::automatic::levels_in_place(size, what));
    };
    found.shared.barrier = times.barrier / static_cast<double>(cost_of(machine_times::short_length).barriers);
    auto without_bytes = found;
    without_bytes.shared.per_byte = 0;
    for (std::size_t i = 0; i < machine_times::rates; ++i) {
      auto& rate = found.shared.per_byte.at[i];
      rate = i > 0 ? found.shared.per_byte.at[i - 1] : least;
      if (times.in_place[i] <= 0) continue;
      const auto length = schedules::rate::lengths[i] / element_size;
      const auto what = cost_of(length);
      const double for_bytes = times.in_place[i] - seconds(what, without_bytes);
      rate = std::max(for_bytes / static_cast<double>(what.bytes), least);
    }
  }
  return found;
}

}  // namespace adasum::detail
