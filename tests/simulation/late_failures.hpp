// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include <adasum/core/stage.hpp>

#include "case.hpp"
#include "expected.hpp"
#include "interrupted.hpp"

namespace adasum::test {

/// Whether ranks may return although another one has failed: if that happens in its last stage, and the others need nothing
/// of what it computes there. That is so where each combines all of its part by itself (doubling, and halving that stops at a
/// number of parts), and where the culprit has no elements.
template <scalar T>
bool may_fail_late(const simulated_case& one, const simulated_input<T>& input) {
  const chosen_order order{static_cast<simulated_order>(one.order)};
  schedule_input asked{.length = one.length, .element_size = sizeof(T), .segments = one.segments};
  asked.along_tree = static_cast<simulated_rule>(one.rule) != simulated_rule::mean_of_units;
  asked.nodes = input.nodes;
  for (const bool in_place : {false, true})
    for (const bool once : {false, true}) {
      asked.in_place = in_place;
      asked.once = once;
      const auto stages = order.stages(static_cast<int>(one.culprit), static_cast<int>(one.ranks), asked);
      if (stages.empty()) continue;
      const auto& last = stages.back();
      if (last.replicated() || !last.survives() || last.part().empty()) return true;
    }
  return false;
}

}  // namespace adasum::test
