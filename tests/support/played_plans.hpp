// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "random_gradients.hpp"
#include "thread_reduction.hpp"

/// One thread plays all ranks: a call that waits for another rank would stop it for ever.
namespace adasum::test {

/// What make(communicator) returns on each rank; a thread for each, as ranks wait for each other when they make plans.
template <class Comm, class Make>
auto made_on_each(const std::vector<Comm>& comms, const Make& make) {
  return results_of(on_each(comms, make));
}

/// A plan for each rank.
template <class T = float, class Schedule, class Rule = rules::adasum, class Space = serial_space>
auto plans_of(int size, const segments& segs, const Schedule& order, const options& choices, const Rule& rule = {},
              const Space& space = {}) {
  return made_on_each(thread_communicator::group(size),
                      [&](const auto& comm) { return plan_allreduce<T>(space, comm, segs, rule, order, choices); });
}

/// plan.buffer() on each rank.
template <class Plan>
void make_buffers(std::vector<Plan>& plans) {
  std::vector<Plan*> each;
  for (auto& plan : plans) each.push_back(&plan);
  on_each(each, [](Plan* plan) { return plan->buffer().size(); });
}

/// start(rank) on all ranks, then test() here and there until all have ended; all in an order that the seed decides.
template <class Plan, class Start>
void play(std::vector<Plan>& plans, std::uint64_t seed, const Start& start) {
  uniform_numbers random(seed);
  std::vector<std::size_t> to_start(plans.size()), started;
  for (std::size_t r = 0; r < plans.size(); ++r) to_start[r] = r;
  for (std::size_t running = plans.size(), turns = 0; running > 0; ++turns) {
    REQUIRE_MESSAGE(turns < 1000000, "the reduction does not end");
    const auto next = random.below(to_start.size() + started.size());
    if (next < to_start.size()) {
      start(to_start[next]);
      started.push_back(to_start[next]);
      to_start.erase(to_start.begin() + static_cast<std::ptrdiff_t>(next));
    } else if (const auto r = started[next - to_start.size()]; plans[r].test()) {
      started.erase(started.begin() + static_cast<std::ptrdiff_t>(next - to_start.size()));
      --running;
    }
  }
}

template <class Plan, class T>
void play(std::vector<Plan>& plans, std::uint64_t seed, std::vector<std::vector<T>>& gradients) {
  play(plans, seed, [&](std::size_t r) { plans[r].start(gradients[r]); });
}

/// test() in turn until all have ended.
template <class Plan>
void test_in_turn(std::vector<Plan>& plans) {
  for (std::size_t ended = 0, turns = 0; ended < plans.size(); ++turns) {
    REQUIRE_MESSAGE(turns < 1000000, "the reduction does not end");
    ended = 0;
    for (auto& plan : plans) ended += plan.test();
  }
}

/// How wait() ends on each rank.
template <class Plan>
std::vector<ending> waits(std::vector<Plan>& plans) {
  std::vector<ending> endings;
  for (auto& plan : plans) endings.push_back(end_of(std::vector<float>{}, [&](auto&) { plan.wait(); }));
  return endings;
}

}  // namespace adasum::test
