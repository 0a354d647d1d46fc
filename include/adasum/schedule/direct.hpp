// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "gram.hpp"

namespace adasum::schedules {

/// The one exchange of schedules::gram where nothing is sent: ranks that share memory measure, weigh and mix their
/// slice of all gradients in place. Three barriers, about 3N elements read or written by each rank, no scratch, any
/// rule. Short gradients are copied to where all ranks read them, and each computes the whole result: one barrier.
///
/// For all ranks of one process (thread_communicator), or of one node with gradients in plan.buffer()
/// (mpi_communicator); another gradient is copied into the plan's buffer and back. A rank that fails or leaves is
/// noticed by the others; at the first barrier of a run for as long as it takes, since others may still compute their
/// gradients, and later within options.patience_seconds.
struct direct {
  static constexpr std::string_view name = "direct";
  static constexpr bool all_at_once = true;
  static constexpr bool shared_memory_only = true;

  /// Up to so many bytes of all ranks together, each rank combines whole gradients: two barriers cost more than that.
  static constexpr std::size_t short_bytes = std::size_t{8} << 10;

  static constexpr bool is_short(int size, const problem& what) {
    return !what.on_device && what.length * what.element_size * static_cast<std::size_t>(size) <= short_bytes;
  }

  std::vector<stage> stages(int rank, int size, const problem& what) const {
    auto all = gram{}.stages(rank, size, what);
    if (is_short(size, what)) {
      all.front().parts.assign(all.front().survivors, all.front().held);
      all.front().sum_over = {rank};
      all.front().placed = true;
    }
    return all;
  }
};

}  // namespace adasum::schedules
