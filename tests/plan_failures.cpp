// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_plan_failures {

/// A gradient of another length than the plan's, on one rank: an error there, and on all other ranks, also where a plan is
/// for no elements and ranks have nothing to send to each other.

using namespace adasum::test;

namespace {

const adasum::serial_space exec;
constexpr std::size_t too_many = 3;

/// make(comm, choices) makes a plan, and run(plan, gradient) runs it.
template <class Make, class Run>
void check_lengths(std::size_t length, const Make& make, const Run& run) {
  for (const int size : {2, 5})
    for (const int culprit : {0, size - 1})
      for (const auto measure : {adasum::measuring::always, adasum::measuring::when_needed})
        for (auto choices : {checked, unchecked}) {
          choices.measure = measure;
          CAPTURE(size);
          CAPTURE(culprit);
          CAPTURE(choices.check_agreement);
          const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
            auto plan = make(comm, choices);
            const bool is_wrong = comm.rank() == culprit;
            auto end = end_of(counted(length + (is_wrong ? too_many : 0)), [&](auto& g) { run(plan, g); });
            auto good = counted(length);
            run(plan, good);  // the plan works on
            return end;
          });
          for (int r = 0; r < size; ++r) {
            const auto& rank = ranks[static_cast<std::size_t>(r)];
            REQUIRE_MESSAGE(rank.value, "rank ", r, " ", rank.description());
            const auto expected = choices.check_agreement ? way::agreement_error
                                  : r == culprit          ? way::bad_input
                                                          : way::communication_error;
            CHECK_MESSAGE(rank.value->how == expected, "rank ", r, " ", to_string(rank.value->how));
            if (expected != way::communication_error)
              CHECK_MESSAGE(rank.value->message.find("the plan is for " + std::to_string(length)) != std::string::npos,
                            rank.value->message);
          }
        }
}

template <class Run>
void check_allreduce(const std::vector<adasum::segments>& cuts, const Run& run) {
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto check = [&](const auto& rule, const adasum::segments& cut) {
      CAPTURE(cut.size());
      check_lengths(
          cut.total(),
          [&](const auto& comm, const auto& choices) {
            return adasum::plan_allreduce<float>(exec, comm, cut, rule, order, choices);
          },
          run);
    };
    for (const auto& cut : cuts) {
      check(adasum::rules::adasum{}, cut);
      check(adasum::rules::mean{}, cut);
    }
  });
}

}  // namespace

TEST_CASE("an allreduce, of no element and of few") {
  check_allreduce({adasum::segments{}, adasum::segments{0, 0}, adasum::segments{1}},
                  [](auto& plan, auto& gradient) { plan(gradient); });
}

TEST_CASE("the same beside other work") {
  check_allreduce({adasum::segments{}}, [](auto& plan, auto& gradient) {
    plan.start(gradient);
    plan.test();
    plan.wait();
  });
}

TEST_CASE("delta_allreduce, whose plan is refused from outside") {
  check_allreduce({adasum::segments{}}, [](auto& plan, auto& weights) {
    const std::vector<float> before(plan.length(), 1);
    adasum::delta_allreduce(plan, before, weights);
  });
}

TEST_CASE("a reduce_scatter of no element") {
  const auto run = [](auto& plan, auto& gradient) { plan(gradient); };
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    check_lengths(
        0,
        [&](const auto& comm, const auto& choices) {
          return adasum::plan_reduce_scatter<float>(exec, comm, adasum::segments{}, order, choices);
        },
        run);
  });
}

TEST_CASE("a reduce_scatter of fewer elements than ranks: only a rank that gets none may return") {
  for_each_message_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (int culprit = 0; culprit < 3; ++culprit) {
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
        adasum::options choices = unchecked;
        choices.measure = adasum::measuring::when_needed;
        auto plan = adasum::plan_reduce_scatter<float>(exec, comm, 1, adasum::rules::mean{}, order, choices);
        const auto end = end_of(counted(comm.rank() == culprit ? 2 : 1), [&](auto& g) { plan(g); });
        CHECK((end.how != way::returned || plan.part().empty()));
        return end.how;
      });
      for (int r = 0; r < 3; ++r) {
        const auto& rank = ranks[static_cast<std::size_t>(r)];
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK((*rank.value == way::bad_input) == (r == culprit));
      }
    }
  });
}

TEST_CASE("the buffer of a plan for no element, on ranks that have memory of their own and those that have none") {
  for (const auto& choices : {checked, unchecked})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
        auto plan = adasum::plan_allreduce<float>(exec, comm, adasum::segments{}, order, choices);
        std::vector<float> gradient;
        if (comm.rank() == 1) gradient.reserve(8);
        plan(gradient);
        CHECK(plan.buffer().empty());
        plan();
        plan(gradient);
        return true;
      });
      for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
    });
}

TEST_CASE("a rank by itself") {
  auto plan = adasum::plan_allreduce<float>(exec, adasum::self_communicator{}, adasum::segments{});
  std::vector<float> none, one(1);
  CHECK_THROWS_WITH_AS(plan(one), "adasum::allreduce_plan: the gradient has 1 element, the plan is for 0",
                       adasum::bad_input);
  CHECK(plan(none).segments() == 0);
}

}  // namespace test_of_plan_failures
