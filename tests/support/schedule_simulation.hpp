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
    for (const auto& stage : stages(rank)) {
      for (std::size_t i = 0; i < stage.survivors; ++i)
        if (i != stage.self) sent += stage.parts[i].size();
      if (!stage.survives()) continue;
      const auto waiting = stage.members.size() - stage.survivors;
      if (!stage.replicated())
        sent += stage.parts[stage.self].size() * (stage.members.size() - 1);
      else if (stage.self == 0)
        sent += stage.held.size() * waiting;
    }
    return sent;
  }
};

}  // namespace adasum::test
