// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>

#include "../core/gram.hpp"
#include "../core/report.hpp"
#include "../core/stage.hpp"
#include "cost.hpp"
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
struct in_place_cost : arithmetic {
  std::size_t gradient_bytes = 0;  ///< how long a gradient is
  std::size_t barriers = 0;        ///< rounds of barriers and sums, one after another
  std::size_t heard = 0;           ///< Σ over the rounds of the ranks that this one waits for, reading a flag of each
  std::size_t copied = 0;          ///< bytes that this rank copies there and back
  std::size_t read = 0;            ///< bytes of others' vectors
  std::size_t numbers = 0;         ///< bytes that it reads of others for sums, and of records for the report
  std::size_t written = 0;         ///< bytes of the result that this rank writes to others
  std::size_t bytes = 0;           ///< all of these

  in_place_cost() = default;
  /// @param stages  of the rank
  in_place_cost(std::span<const stage> stages, int rank, const schedule_input& input)
      : gradient_bytes(input.length * input.element_size) {
    const bool published = stages.size() == 1 && stages.front().published;
    copied = published ? gradient_bytes : 2 * gradient_bytes;
    for (const auto& stage : stages) {
      const auto n = stage.members.size(), others = n - 1;
      if (others == 0) continue;
      for (int i = 0; i < (stage.survives() && published ? 1 : 2); ++i) meet(n, stage.self, detail::sum_radix(2), 0);
      if (!stage.survives()) continue;
      const auto part = stage.part().size(), slice = part * input.element_size;
      read += (published ? 1 : 2) * others * slice;
      if (stage.grouped)
        for (std::size_t i = 0; i < n; ++i)
          if (i != stage.self)
            numbers += detail::known_leaves(stage, i).size() * input.segments * sizeof(report::entry);
      if (stage.sum_over.size() > 1)
        meet(stage.sum_over.size(), detail::place_of(rank, stage.sum_over), detail::sum_radix(n),
             input.segments * packed_size(n) * sizeof(double));
      if (!published) {
        if (stages.size() == 1 && stage.survivors == n) copied -= 2 * slice;
        written += others * slice;
      }
      combine(n, part);
    }
    bytes = copied + read + numbers + written;
  }
  /// Of rank 0 by this schedule.
  in_place_cost(int size, const schedule_input& input, const shared_memory& order = {})
      : in_place_cost(order.stages(0, size, input), 0, input) {}

  /// The same of a gradient that lies in plan.buffer(), and is not copied.
  in_place_cost in_buffer() const {
    in_place_cost of = *this;
    of.bytes -= copied;
    of.copied = 0;
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
  const auto length = rate::place_of(of.gradient_bytes);
  const double barriers = static_cast<double>(of.barriers) * on.shared.barrier;
  return of.after(barriers + static_cast<double>(of.bytes) * on.shared.per_byte.of(length), on, length);
}

}  // namespace adasum::schedules
