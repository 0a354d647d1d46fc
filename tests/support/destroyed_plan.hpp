// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <optional>

#include <adasum/communicators/threads.hpp>
#include <adasum/core/error.hpp>

#include "ranks.hpp"

namespace adasum::test {

/// One rank destroys its plan in the middle of a run: none of the others waits for ever.
/// @param make      make(comm): the rank's plan
/// @param gradient  gradient(comm): what it reduces
template <class Make, class Gradient>
void check_destroyed_midway(int size, int culprit, const Make& make, const Gradient& gradient) {
  const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
    auto mine = gradient(comm);
    std::optional plan(make(comm));
    plan->start(mine);
    if (comm.rank() == culprit) {
      plan->test();
      plan.reset();
      return true;
    }
    try {
      plan->wait();
    } catch (const communication_error&) {
    }
    return true;
  });
  for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
}

}  // namespace adasum::test
