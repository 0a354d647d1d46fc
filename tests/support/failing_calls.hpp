// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "bits.hpp"
#include "ending.hpp"
#include "space_that_fails.hpp"

namespace adasum::test {

/// One rank's first kernel call of a reduction fails, then its second, and so on, until none does any more. Each time, no rank
/// waits for ever, and the next reduction by the same plans has the expected bits on all ranks.
/// @param on_ranks  on_ranks(function): function(communicator) on each rank, and how it ended there
/// @param plan      plan(space, communicator): what reduces a gradient in place
template <class OnRanks, class Plan>
void check_failing_calls(std::size_t culprit, const std::vector<std::vector<float>>& gradients,
                         const std::vector<float>& expected, const OnRanks& on_ranks, const Plan& plan) {
  struct attempts {
    ending end;  // of the first
    std::vector<float> first, second;
  };
  bool failed = true;
  int call = 1;
  for (; std::exchange(failed, false); ++call) {
    CAPTURE(culprit);
    CAPTURE(call);
    const auto ranks = on_ranks([&](const auto& comm) {
      const auto self = static_cast<std::size_t>(comm.rank());
      int calls_left = 0;
      space_that_fails space;
      space.calls_left = &calls_left;
      auto reduce = plan(space, comm);
      if (self == culprit) calls_left = call;
      attempts found;
      // Nobody may touch the gradient when it is gone.
      found.end = end_of(gradients[self], [&](auto& gradient) {
        reduce(gradient);
        found.first = gradient;
      });
      calls_left = 0;
      found.second = gradients[self];
      reduce(found.second);
      return found;
    });
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      REQUIRE_MESSAGE(ranks[rank].value, "rank ", rank, " ", ranks[rank].description());
      const auto& found = *ranks[rank].value;
      CHECK(same_bits(found.second, expected));
      const auto how = found.end.how;
      if (rank == culprit)
        failed = how != way::returned;
      else
        CHECK((how == way::communication_error || how == way::returned));
      if (how == way::returned) CHECK(same_bits(found.first, expected));
    }
  }
  CHECK(call > 2);  // at least one did fail
}

}  // namespace adasum::test
