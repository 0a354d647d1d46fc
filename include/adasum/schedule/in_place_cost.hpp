// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>

#include "../core/gram.hpp"
#include "../core/stage.hpp"
#include "machine.hpp"
#include "shared_memory.hpp"

namespace adasum::schedules {

/// What one rank does in one reduction by schedules::shared_memory, of a gradient that is copied there and back: P ranks, N
/// bytes each.
///
///     short gradients   N bytes copied, those of P - 1 others read; each rank combines all of them whole; 1 barrier
///     others            2 N bytes copied, N/P bytes of each other rank read twice and written once, and Gram matrices;
///                       each rank combines N/P bytes of all; 3 barriers
struct in_place_cost {
  std::size_t gradient_bytes = 0;
  std::size_t barriers = 0, bytes = 0, pair_elements = 0, products = 0, terms = 0;

  in_place_cost(int size, const schedule_input& input) : gradient_bytes(input.length * input.element_size) {
    const auto ranks = static_cast<std::size_t>(size), others = ranks - 1;
    const bool is_short = shared_memory::is_short(size, input);
    const auto part = is_short ? input.length : (input.length + others) / ranks;
    barriers = is_short ? 1 : 3;
    bytes = is_short ? ranks * gradient_bytes
                     : 2 * gradient_bytes + 3 * others * part * input.element_size +
                           others * input.segments * packed_size(ranks) * sizeof(double);
    if (ranks == 2) pair_elements = part;
    if (ranks > 2) products = packed_size(ranks) * part;
    if (ranks > 2) terms = ranks * part;
  }
};

/// Seconds of a rank that never waits for a slower one.
constexpr double seconds(const in_place_cost& of, const machine& on) {
  const auto times = [&](std::size_t count, const rate& each) {
    return static_cast<double>(count) * each.of(of.gradient_bytes);
  };
  return times(of.barriers, on.shared.barrier) + times(of.bytes, on.shared.per_byte) +
         times(of.pair_elements, on.per_pair_element) + times(of.products, on.per_product) +
         times(of.terms, on.per_term);
}

}  // namespace adasum::schedules
