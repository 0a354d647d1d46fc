// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

#include "../core/stage.hpp"
#include "all_to_all.hpp"

namespace adasum::schedules {

/// schedules::all_to_all without messages: ranks that share memory measure and mix their slices of all gradients in place.
/// It takes three barriers and no scratch memory, each rank reads or writes about 3N elements, and any rule works. Short
/// gradients are copied to where all ranks read them, and each rank computes the whole result: one barrier.
///
/// For all ranks of one process (thread_communicator), or of one node with gradients in plan.buffer()
/// (mpi_communicator); a gradient that lies elsewhere is copied into the plan's buffer and back. The other ranks notice
/// when a rank fails or leaves. At the first barrier of a run they wait as long as it takes, since it may still be
/// computing its gradient; at the others for at most options.timeout.
struct shared_memory {
  static constexpr std::string_view name = "shared_memory";
  static constexpr bool supports_gram_rules = true;

  /// Where all ranks' gradients together have at most this many bytes, each rank combines them whole: that costs less than
  /// two more barriers.
  static constexpr std::size_t short_bytes = std::size_t{8} << 10;

  static constexpr bool is_short(int size, const schedule_input& input) {
    return !input.on_device && input.length * input.element_size * static_cast<std::size_t>(size) <= short_bytes;
  }

  static constexpr shared_memory_use uses_shared_memory(int, const schedule_input&) {
    return shared_memory_use::required;
  }

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    auto all = all_to_all{}.stages(rank, size, input);
    if (is_short(size, input)) {
      auto& stage = all.front();
      stage.parts.assign(stage.survivors, stage.held);
      stage.sum_over = {rank};
      stage.published = true;
    }
    return all;
  }
};

}  // namespace adasum::schedules
