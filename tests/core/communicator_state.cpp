// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the handles of a communicator share (core/communicator_state.hpp), and what of it one has that passes on to another.
#include <doctest/doctest.h>

#include <adasum/allreduce.hpp>
#include <adasum/communicators/any.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/ranks.hpp"

namespace test_of_core_communicator_state {

using namespace adasum;

namespace {

/// Counts its copies.
struct counted_communicator : thread_communicator {
  explicit counted_communicator(const thread_communicator& comm) : thread_communicator(comm) {}
  std::shared_ptr<int> copies = std::make_shared<int>(0);
};

}  // namespace

TEST_CASE("a communicator that passes on to another: all is the other's but for the plans and what it gives up") {
  communicator_state other, alone(nullptr);
  communicator_state by(&other), by_that(&by);
  by_that.set_reduction_in_flight(true);
  by.give_up();
  CHECK(by_that.gave_up());
  CHECK_FALSE(other.gave_up());  // it has not waited in vain
  other.give_up();
  by_that.set_timeout(std::chrono::seconds(3));
  other.permit({"it is not", {}});
  for (const auto* one : {&other, &by, &by_that}) {
    CHECK(one->reduction_in_flight());
    CHECK(one->gave_up());
    CHECK((one->timeout)() == std::chrono::seconds(3));
    CHECK_THROWS_WITH_AS(one->require_usable("call"), "call: it is not", bad_input);
  }
  CHECK_FALSE(alone.reduction_in_flight());
  CHECK_FALSE(alone.gave_up());
  CHECK((alone.timeout)() == no_timeout);
  CHECK_NOTHROW(alone.require_usable("call"));
  CHECK(&by_that.plans() != &by.plans());
  CHECK(&by.plans() != &other.plans());
}

TEST_CASE("the thread that may") {
  communicator_state state;
  state.permit({"this is another thread", std::this_thread::get_id()});
  CHECK_NOTHROW(state.require_usable("call"));
  std::thread([&] { CHECK_THROWS_AS(state.require_usable("call"), bad_input); }).join();
}

TEST_CASE("plans that are kept hold no communicator, and go on with the one of each call") {
  adasum::test::on_ranks(2, [](const thread_communicator& comm) {
    const serial_space space;
    for (int turn = 0; turn < 3; ++turn) {  // each time another object
      const counted_communicator mine(comm);
      const any_communicator any(mine);
      std::vector<float> gradient(100, 1), by_any(100, 1);
      adasum_allreduce(space, mine, gradient);
      CHECK(mine.copies.use_count() == 2);  // this one, and that in `any`
      adasum_allreduce(space, any, by_any);
      adasum_allreduce(space, any, by_any);
      CHECK(mine.copies.use_count() == 2);
      CHECK(gradient == by_any);
    }
    return true;
  });
}

}  // namespace test_of_core_communicator_state
