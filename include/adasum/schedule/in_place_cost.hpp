// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "machine.hpp"
#include "shared_memory.hpp"
#include "sum_order.hpp"
#include "transfers.hpp"

namespace adasum::schedules {

/// What one rank does in one reduction in memory that all ranks share, of a gradient that is copied there and back: counted
/// from its stages, under a rule that looks at inner products. A gradient has N bytes:
///
///     published        N bytes copied, those of P - 1 others read; each rank combines all of them whole; 1 barrier
///     others           2 N bytes copied; for each stage of q ranks with slices of n bytes: n bytes of each other member read
///                      twice and written once, and Gram matrices; each rank combines n bytes of all; 3 barriers. If
///                      there is only one stage, 2 (N - n) bytes are copied: no other rank reads this one's n bytes
///
/// A barrier, or a sum, of more than 8 ranks takes several rounds, one after another (sum_order.hpp). A rank that stays behind
/// at a stage only takes part in its first and last barrier. (What it is told for the report then, by message, is not counted.)
///
/// On several nodes, it counts the stages inside the rank's node.
struct in_place_cost {
  std::size_t gradient_bytes = 0;  ///< how long a gradient is
  std::size_t barriers = 0;        ///< rounds of barriers and sums, one after another
  std::size_t heard = 0;           ///< Σ over the rounds of the ranks that this one waits for, reading a flag of each
  std::size_t copied = 0;          ///< bytes that this rank copies there and back
  std::size_t read = 0;            ///< bytes of others' vectors
  std::size_t numbers = 0;         ///< bytes that it reads of others for sums, and of records for the report
  std::size_t written = 0;         ///< bytes of the result that this rank writes to others
  std::size_t bytes = 0;           ///< all of these
  std::size_t pair_elements = 0;   ///< see cost
  std::size_t products = 0;        ///< see cost
  std::size_t terms = 0;           ///< see cost

  in_place_cost() = default;
  /// @param stages  of the rank
  in_place_cost(const std::vector<stage>& stages, int rank, const schedule_input& input)
      : gradient_bytes(input.length * input.element_size) {
    const bool published = stages.size() == 1 && stages.front().published;
    copied = published ? gradient_bytes : 2 * gradient_bytes;
    for (const auto& stage : stages) {
      const auto n = stage.members.size(), others = n - 1;
      if (others == 0) continue;
      meet(n, stage.self, detail::sum_radix(2), 0);
      if (!stage.survives()) {
        meet(n, stage.self, detail::sum_radix(2), 0);
        continue;
      }
      const auto part = stage.part().size(), slice = part * input.element_size;
      read += (published ? 1 : 2) * others * slice;
      if (stage.grouped)
        for (const auto& one : detail::transfers_to_combine(stage).receives)
          numbers += one.leaves.size() * input.segments * sizeof(report::entry);
      if (stage.sum_over.size() > 1) {
        const auto self = std::ranges::find(stage.sum_over, rank) - stage.sum_over.begin();
        meet(stage.sum_over.size(), static_cast<std::size_t>(self), detail::sum_radix(n),
             input.segments * packed_size(n) * sizeof(double));
      }
      if (!published) {
        if (stages.size() == 1 && stage.survivors == n) copied -= 2 * slice;
        written += others * slice;
        meet(n, stage.self, detail::sum_radix(2), 0);
      }
      if (n == 2) pair_elements += part;
      if (n > 2) products += packed_size(n) * part;
      if (n > 2) terms += n * part;
    }
    bytes = copied + read + numbers + written;
  }
  /// Of rank 0 by this schedule.
  in_place_cost(int size, const schedule_input& input, const shared_memory& order = {})
      : in_place_cost(order.stages(0, size, input), 0, input) {}

  /// The same of a gradient that lies in plan.buffer(), and is not copied.
  in_place_cost in_buffer() const {
    in_place_cost of = *this;
    of.bytes -= std::exchange(of.copied, 0);
    return of;
  }

 private:
  /// @param bytes_of_each  how many are read of each rank heard from
  void meet(std::size_t ranks, std::size_t self, std::size_t radix, std::size_t bytes_of_each) {
    const detail::sum_order order(ranks, self, radix);
    barriers += order.exchanges();
    for (std::size_t round = 0; round < order.exchanges(); ++round)
      order.visit(
          round, [](std::size_t) {},
          [&](std::size_t) {
            ++heard;
            numbers += bytes_of_each;
          });
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
