// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/played_plans.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_plan_in_flight {

/// What can, and what cannot be done with plans while one is in flight.

using namespace adasum::test;

namespace {

const adasum::segments segs{9, 0, 70, 21};

std::vector<std::vector<float>> gradients_of(int size) {
  return random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 29);
}

}  // namespace

TEST_CASE("one plan in flight on a communicator: another reduction there is refused before anything is sent") {
  const auto ranks = on_ranks(2, [](const adasum::thread_communicator& comm) {
    const adasum::serial_space space;
    const auto inputs = gradients_of(2);
    auto mine = inputs[static_cast<std::size_t>(comm.rank())], other = mine;
    auto first = adasum::plan_allreduce<float>(space, comm, segs, unchecked);
    auto second = adasum::plan_allreduce<float>(space, comm, segs, unchecked);
    first.start(mine);
    const auto refused = [](const auto& call) {
      try {
        call();
      } catch (const adasum::bad_input& e) {
        return std::string(e.what()).find("another plan is in flight on this communicator") != std::string::npos;
      }
      return false;
    };
    bool all = refused([&] { second.start(other); }) && refused([&] { second(other); }) &&
               refused([&] { adasum::adasum_allreduce(space, comm, other, segs); }) &&
               refused([&] { adasum::plan_allreduce<float>(space, comm, segs); }) &&
               refused([&] { adasum::plan_bucketed<float>(space, comm, std::vector{3}, 100); }) &&
               same_bits(other, inputs[static_cast<std::size_t>(comm.rank())]) && !second.is_in_flight();
    std::vector<float> weights(segs.total(), 11);  // whole numbers: what is subtracted and added again leaves no trace
    all = all && refused([&] { adasum::delta_allreduce(second, std::vector<float>(segs.total(), 10), weights); }) &&
          weights == std::vector<float>(segs.total(), 11);
    first.wait();
    second.start(other);
    second = {};  // destroyed in flight
    auto third = inputs[static_cast<std::size_t>(comm.rank())];
    first(third);
    return all && same_bits(mine, third);
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value);
  }
}

TEST_CASE("a plan moved in flight") {
  for (const bool in_buffer : {false, true}) {
    auto plans = plans_of(3, segs, adasum::schedules::recursive_halving{}, checked);
    auto gradients = gradients_of(3);
    make_buffers(plans);
    for (std::size_t r = 0; r < 3; ++r) std::ranges::copy(gradients[r], plans[r].buffer().begin());
    for (std::size_t r = 0; r < 3; ++r) in_buffer ? plans[r].start() : plans[r].start(gradients[r]);
    auto moved = std::move(plans);
    std::vector<std::decay_t<decltype(moved[0])>> again;
    for (auto& plan : moved) {
      again.push_back(std::move(plan));
      CHECK(plan.is_empty());
      CHECK_FALSE(plan.is_in_flight());
      CHECK_THROWS_WITH_AS(plan.wait(), doctest::Contains("wait: the plan is empty"), adasum::bad_input);
    }
    test_in_turn(again);
    for (const auto& end : waits(again)) CHECK(end.how == way::returned);
  }
}

}  // namespace test_of_plan_in_flight
