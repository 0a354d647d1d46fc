// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_plan_placement {

/// Where plans let gradients lie, on ranks of one node and of several.

using namespace adasum::test;

namespace {

/// What a plan does with the caller's gradient, and with its own buffer.
struct placement {
  std::string schedule, schedule_of_buffer;
  std::size_t bytes, bytes_of_buffer;
  std::vector<float> gradient, buffer;
};

template <class Schedule>
std::vector<placement> placements(const std::vector<int>& node_of_rank, const adasum::segments& segs,
                                  const Schedule& schedule) {
  const auto blocks = node_communicator::make_blocks();
  const int size = static_cast<int>(node_of_rank.size());
  const auto gradients = random_gradients<float>(node_of_rank.size(), segs.total(), 3);
  std::vector<placement> found;
  for (const auto& rank : on_ranks(size, [&](const adasum::thread_communicator& ranks) {
         const node_communicator comm(ranks, node_of_rank, blocks);
         auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, schedule, unchecked);
         const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
         placement made;
         made.gradient = mine;
         const auto& first = plan(made.gradient);
         made.schedule = first.schedule();
         made.bytes = first.bytes_sent();
         std::ranges::copy(mine, plan.buffer().begin());
         const auto& second = plan();
         made.schedule_of_buffer = second.schedule();
         made.bytes_of_buffer = second.bytes_sent();
         made.buffer.assign(plan.buffer().begin(), plan.buffer().end());
         return made;
       })) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    found.push_back(*rank.value);
  }
  return found;
}

}  // namespace

TEST_CASE("automatic, too many short segments for work in place: on one node only plan.buffer() is shared") {
  const adasum::segments segs(std::vector<std::size_t>(2048, 32));
  for (const auto& rank : placements({0, 0, 0, 0}, segs, adasum::schedules::automatic{})) {
    CHECK(rank.schedule != "shared_memory");
    CHECK(rank.schedule_of_buffer == "shared_memory");
    CHECK(rank.bytes > 0);
    CHECK(rank.bytes_of_buffer == 0);
  }
}

TEST_CASE("automatic on two nodes: in plan.buffer(), only what leaves a node is sent") {
  const adasum::segments segs(std::vector<std::size_t>(2048, 32));
  for (const auto& rank : placements({0, 0, 1, 1}, segs, adasum::schedules::automatic{})) {
    CHECK(rank.schedule != "shared_memory");
    CHECK(rank.schedule_of_buffer == rank.schedule);
    CHECK(rank.bytes_of_buffer > 0);
    CHECK(rank.bytes_of_buffer < rank.bytes);
    CHECK(same_bits(rank.gradient, rank.buffer));
  }
}

TEST_CASE("automatic that is not to work in place sends messages, in plan.buffer() too") {
  const adasum::segments segs{70'000};
  for (const auto& nodes : {std::vector{0, 0, 0}, {0, 0, 1}})
    for (const auto& rank : placements(nodes, segs, adasum::schedules::automatic{.in_place = false})) {
      CHECK(rank.schedule_of_buffer != "shared_memory");
      CHECK(rank.bytes_of_buffer == rank.bytes);
      CHECK(rank.bytes > 0);
    }
}

TEST_CASE("automatic, work in place pays: gradients of the caller's are copied to shared memory, on one node only") {
  const adasum::segments segs{70'000};
  for (const auto& rank : placements({0, 0, 0}, segs, adasum::schedules::automatic{})) {
    CHECK(rank.schedule == "shared_memory");
    CHECK(rank.bytes == 0);
  }
  for (const auto& rank : placements({0, 0, 1}, segs, adasum::schedules::automatic{})) {
    CHECK(rank.schedule != "shared_memory");
    CHECK(rank.schedule_of_buffer == rank.schedule);
  }
}

TEST_CASE("a plan that is destroyed in flight after its gradient: the gradient is not read any more") {
  // Sanitizers see it. This communicator cannot post, so start() has not yet copied the gradient to shared memory.
  const std::vector<int> node_of_rank{0, 0};
  const auto blocks = node_communicator::make_blocks();
  for (const auto& rank : on_ranks(2, [&](const adasum::thread_communicator& ranks) {
         const node_communicator comm(ranks, node_of_rank, blocks);
         auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, 100'000, unchecked);
         auto gradient = std::make_unique<std::vector<float>>(100'000, 1.0f);
         if (comm.rank() == 1) return end_of(*gradient, [&](auto& g) { plan(g); }).how;
         plan.start(*gradient);
         gradient.reset();
         return way::communication_error;  // for the other
       })) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == way::communication_error);
  }
}

}  // namespace test_of_plan_placement
