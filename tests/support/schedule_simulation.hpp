// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <adasum/testing/schedule_simulation.hpp>

namespace adasum::test {

using detail::defining_tree;

/// The simulation of check_schedule, for tests that look at more.
class schedule_simulation : public detail::schedule_simulation {
 public:
  using detail::schedule_simulation::schedule_simulation;

  /// Elements that a rank sends, from the meaning of a stage.
  std::size_t elements_sent(std::size_t rank) const {
    std::size_t sent = 0;
    for (const auto& level : stages(rank)) {
      for (std::size_t i = 0; i < level.survivors; ++i)
        if (i != level.self) sent += level.parts[i].size();
      if (!level.survives()) continue;
      const auto waiting = level.members.size() - level.survivors;
      if (!level.replicated())
        sent += level.parts[level.self].size() * (level.members.size() - 1);
      else if (level.self == 0)
        sent += level.held.size() * waiting;
    }
    return sent;
  }
};

}  // namespace adasum::test
