// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/minimal_types.hpp"
#include "support/played_plans.hpp"
#include "support/random_gradients.hpp"
#include "support/sizes.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_plan_overlap {

/// Plans that reduce beside other work. Most of these tests play all ranks from one thread, which a call that waits for
/// another rank would stop for ever.

using namespace adasum::test;

namespace {

const adasum::segments segs{17, 0, 30, 4};

const std::vector<int> rank_counts{1, 2, 3, 4, 5, 8};

template <class T = float>
std::vector<std::vector<T>> gradients_of(int size, std::uint64_t seed = 5) {
  return random_gradients<T>(static_cast<std::size_t>(size), segs.total(), seed);
}

/// What gradients_of(size) must become. To find it out takes longer than to reduce.
const expectation& expected_of(int size) {
  static std::map<int, expectation> found;
  if (const auto known = found.find(size); known != found.end()) return known->second;
  return found.emplace(size, expectation::of<float>(adasum::rules::adasum{}, gradients_of(size), segs)).first->second;
}

void check_good_run(auto& plans, std::uint64_t seed) {
  const int size = static_cast<int>(plans.size());
  auto gradients = gradients_of(size);
  play(plans, seed, gradients);
  for (const auto& end : waits(plans)) CHECK_MESSAGE(end.how == way::returned, end.message);
  const auto& expected = expected_of(size);
  for (const auto& gradient : gradients) {
    CHECK(same_bits(gradient, gradients.front()));
    CHECK(worst_error_over_bound(gradient, expected.exact.values, expected.bounds, segs) <= 1);
  }
}

}  // namespace

TEST_CASE("one thread plays all ranks: nobody blocks, and the bits are those of the blocking call") {
  for (const int size : rank_counts)
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto inputs = gradients_of(size);
      const auto expected = reduce_on_threads<float>(inputs, segs, adasum::rules::adasum{}, order, unchecked);
      for (const auto& choices : {unchecked, checked}) {
        auto plans = plans_of(size, segs, order, choices);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          auto gradients = inputs;
          play(plans, seed, gradients);
          for (std::size_t r = 0; r < plans.size(); ++r) {
            CHECK(plans[r].test());
            CHECK(same_findings(plans[r].wait(), expected[r].found));
            CHECK(plans[r].last_report().bytes_sent() == expected[r].found.bytes_sent());
            CHECK(same_bits(gradients[r], expected[r].gradient));
            CHECK_FALSE(plans[r].is_in_flight());
          }
        }
      }
    });
}

TEST_CASE("the same in the plans' buffers") {
  for (const int size : rank_counts)
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const auto inputs = gradients_of(size);
      const auto expected = reduce_on_threads<float>(inputs, segs, adasum::rules::adasum{}, order, unchecked);
      auto plans = plans_of(size, segs, order, checked);
      make_buffers(plans);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        for (std::size_t r = 0; r < plans.size(); ++r) std::ranges::copy(inputs[r], plans[r].buffer().begin());
        play(plans, seed, [&](std::size_t r) { plans[r].start(); });
        for (auto& plan : plans) {
          plan.wait();
          const auto result = plan.buffer();
          CHECK(same_bits(std::vector(result.begin(), result.end()), expected.front().gradient));
        }
      }
    });
}

TEST_CASE("policies, 16-bit messages and hierarchies, too") {
  const int size = 5;
  auto inputs = gradients_of(size);
  inputs[3][20] = std::numeric_limits<float>::infinity();
  auto choices = unchecked;
  choices.nonfinite = adasum::nonfinite_policy::exclude;
  choices.wire = adasum::wire_format::bfloat16;
  const auto check = [&](const auto& order) {
    const auto expected = reduce_on_threads<float>(inputs, segs, adasum::rules::adasum{}, order, choices);
    auto plans = plans_of(size, segs, order, choices);
    auto gradients = inputs;
    play(plans, 7, gradients);
    for (std::size_t r = 0; r < plans.size(); ++r) {
      CHECK(plans[r].wait().excluded() == std::vector{3});
      CHECK(same_bits(gradients[r], expected[r].gradient));
    }
  };
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    check(order);
  });
  check(adasum::schedules::hierarchical{std::vector{0, 0, 1, 1, 1}, adasum::rules::mean{}});

  choices.nonfinite = adasum::nonfinite_policy::raise;
  auto plans = plans_of(size, segs, adasum::schedules::automatic{}, choices);
  auto gradients = inputs;
  play(plans, 7, gradients);
  for (auto& plan : plans)
    CHECK_THROWS_WITH_AS(plan.wait(), "adasum: Inf or NaN in the gradient of rank 3 (segment 2)",
                         adasum::nonfinite_error);
  for (std::size_t r = 0; r < plans.size(); ++r) CHECK(same_bits(gradients[r], inputs[r]));
}

TEST_CASE("from the second run on, nothing is allocated") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const int size : {1, 2, 3, 5})
      for (const auto& choices : {unchecked, checked})
        for (const bool in_buffer : {false, true}) {
          auto gradients = gradients_of(size);
          auto plans = plans_of(size, segs, order, choices);
          const auto run = [&] {
            for (std::size_t r = 0; r < plans.size(); ++r) in_buffer ? plans[r].start() : plans[r].start(gradients[r]);
            test_in_turn(plans);
            for (auto& plan : plans) plan.wait();
          };
          make_buffers(plans);
          for (auto& plan : plans) std::ranges::fill(plan.buffer(), 1.0f);
          run();
          const auto before = allocations();
          run();
          run();
          CHECK(allocations() == before);
        }
  });
}

TEST_CASE("some ranks start, others call") {
  const int size = 5;
  const auto inputs = gradients_of(size);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto expected = reduce_on_threads<float>(inputs, segs, adasum::rules::adasum{}, order, unchecked);
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{}, order);
      auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
      if (comm.rank() % 2 == 0) {
        plan(gradient);
      } else {
        plan.start(gradient);
        plan.test();
        plan.wait();
      }
      return gradient;
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(same_bits(*rank.value, expected.front().gradient));
    }
  });
}

TEST_CASE("a communicator that cannot post: start() does nothing, test() does the work, so that a loop over it ends") {
  for (const int size : {1, 2, 5}) {
    const auto inputs = gradients_of(size);
    const auto expected =
        reduce_on_threads<float>(inputs, segs, adasum::rules::adasum{}, adasum::schedules::automatic{}, unchecked);
    CHECK_FALSE(adasum::posting_communicator<minimal_communicator, adasum::serial_space>);
    const auto ranks = on_each(group_of<minimal_communicator>(size), [&](const minimal_communicator& comm) {
      auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs);
      auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
      plan.start(gradient);
      CHECK(same_bits(gradient, inputs[static_cast<std::size_t>(comm.rank())]));
      int turns = 1;
      while (!plan.test()) ++turns;  // as in docs/guide/overlap.md
      CHECK(turns == 1);
      CHECK(plan.test());
      plan.wait();
      return gradient;
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(same_bits(*rank.value, expected.front().gradient));
    }
  }
}

TEST_CASE("calls that do not follow each other") {
  auto plans = plans_of(2, segs, adasum::schedules::automatic{}, unchecked);
  auto gradients = gradients_of(2);
  CHECK_THROWS_WITH_AS(plans[0].test(),
                       "adasum::allreduce_plan::test: no reduction is in flight; call start() first", adasum::bad_input);
  CHECK_THROWS_WITH_AS(plans[0].wait(),
                       "adasum::allreduce_plan::wait: no reduction is in flight; call start() first", adasum::bad_input);
  plans[0].start(gradients[0]);
  CHECK(plans[0].is_in_flight());
  CHECK_THROWS_WITH_AS(plans[0].start(gradients[0]),
                       "adasum::allreduce_plan::start: a reduction is in flight; call wait() first", adasum::bad_input);
  CHECK_THROWS_WITH_AS(plans[0].start(), doctest::Contains("start: a reduction is in flight"), adasum::bad_input);
  CHECK_THROWS_WITH_AS(plans[0](gradients[0]), doctest::Contains("operator(): a reduction is in flight"),
                       adasum::bad_input);
  const auto weights = gradients[0];
  auto changed = weights;
  CHECK_THROWS_AS(adasum::delta_allreduce(plans[0], gradients[0], changed), adasum::bad_input);
  CHECK(same_bits(changed, weights));
  plans[1].start(gradients[1]);
  test_in_turn(plans);
  CHECK_THROWS_AS(plans[0].start(gradients[0]), adasum::bad_input);  // until wait()
  for (auto& plan : plans) CHECK_NOTHROW(plan.wait());
  CHECK(same_bits(gradients[0], gradients[1]));
  CHECK_THROWS_AS(plans[0].wait(), adasum::bad_input);
}

TEST_CASE("a plan with a weight of zero, or a rank that is left out, allocates nothing from the second run on") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (const int size : {2, 3, 5}) {
      auto gradients = gradients_of(size);
      std::ranges::fill(gradients[1], 0.0f);
      auto choices = unchecked;
      choices.nonfinite = adasum::nonfinite_policy::exclude;
      gradients[0][3] = std::numeric_limits<float>::infinity();
      auto plans = plans_of(size, segs, order, choices);
      std::size_t before = 0;
      for (int run = 0; run < 3; ++run) {
        auto inputs = gradients;
        if (run == 1) before = allocations();
        for (std::size_t r = 0; r < plans.size(); ++r) plans[r].start(inputs[r]);
        test_in_turn(plans);
        for (auto& plan : plans) plan.wait();
        if (run == 1) CHECK(allocations() == before);
      }
      CHECK(plans[0].last_report().recombined_segments() == 0);
      CHECK(plans[0].last_report().excluded() == std::vector{0});
    }
  });
}

TEST_CASE("bad input on one rank: wait() says so, and the next run is good") {
  for (const int size : {2, 3, 4, 5, 8})
    for_each_schedule([&](const auto& order, const std::string& name) {
      for (const bool check : {false, true})
        for (std::size_t culprit = 0; culprit < static_cast<std::size_t>(size); ++culprit) {
          CAPTURE(name);
          CAPTURE(size);
          CAPTURE(check);
          CAPTURE(culprit);
          auto plans = plans_of(size, segs, order, check ? checked : unchecked);
          auto gradients = gradients_of(size);
          gradients[culprit].push_back(0);
          play(plans, culprit, gradients);
          const auto endings = waits(plans);
          for (std::size_t r = 0; r < plans.size(); ++r) {
            const auto expected = check          ? way::agreement_error
                                  : r == culprit ? way::bad_input
                                                 : way::communication_error;
            CHECK_MESSAGE(endings[r].how == expected, to_string(endings[r].how), ": ", endings[r].message);
          }
          check_good_run(plans, 3);
        }
    });
}

TEST_CASE("a rule or a kernel that throws midway") {
  const auto check = [](int size, const auto& order, const auto& make_plans) {
    for (std::size_t culprit = 0; culprit < static_cast<std::size_t>(size); ++culprit) {
      bool failed = true;
      for (int calls = 0; std::exchange(failed, false); ++calls) {
        CAPTURE(size);
        CAPTURE(culprit);
        CAPTURE(calls);
        const auto comms = adasum::thread_communicator::group(size);
        auto plans = make_plans(comms, order, culprit, calls);
        auto gradients = gradients_of(size);
        play(plans, culprit + 100, gradients);
        const auto endings = waits(plans);
        for (std::size_t r = 0; r < plans.size(); ++r)
          if (r == culprit)
            CHECK((endings[r].how == way::returned || endings[r].message.find("failed") != std::string::npos));
          else
            CHECK((endings[r].how == way::returned || endings[r].how == way::communication_error));
        failed = endings[culprit].how != way::returned;
        if (failed)
          check_good_run(plans, 3);
        else  // the countdown is not over
          for (const auto& end : endings) CHECK(end.how == way::returned);
      }
    }
  };
  for (const int size : few_or_all({2, 3, 5}, {2, 3, 4, 5, 8}))
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      const auto make = [](const auto& comms, const auto& schedule, std::size_t culprit, auto rule_of, auto space_of) {
        return made_on_each(comms, [&](const auto& comm) {
          const bool bad = comm.rank() == static_cast<int>(culprit);
          return adasum::plan_allreduce<float>(space_of(bad), comm, segs, rule_of(bad), schedule, unchecked);
        });
      };
      check(size, order, [&](const auto& comms, const auto& schedule, std::size_t culprit, int calls) {
        return make(
            comms, schedule, culprit, [=](bool bad) { return failing_rule{countdown(bad ? calls : -1)}; },
            [](bool) { return adasum::serial_space{}; });
      });
      check(size, order, [&](const auto& comms, const auto& schedule, std::size_t culprit, int calls) {
        return make(
            comms, schedule, culprit, [](bool) { return adasum::rules::adasum{}; },
            [=](bool bad) { return failing_space{countdown(bad ? calls : -1), {}}; });
      });
    });
}

TEST_CASE("a plan destroyed in flight: nobody waits for it") {
  for (const int size : {2, 3, 5})
    for_each_schedule([&](const auto& order, const std::string& name) {
      for (const bool in_buffer : {false, true})
        for (const bool check : {false, true})
          for (int tests = 0; tests < 6; ++tests) {
            CAPTURE(name);
            CAPTURE(size);
            CAPTURE(tests);
            const auto inputs = gradients_of(size);
            const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
              auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
              auto choices = unchecked;
              choices.check_agreement = check;
              auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{},
                                                        order, choices);
              if (in_buffer) std::ranges::copy(gradient, plan.buffer().begin());
              in_buffer ? plan.start() : plan.start(gradient);
              if (comm.rank() == size / 2) {
                for (int i = 0; i < tests; ++i) plan.test();
                return ending{};
              }
              return end_of(std::vector<float>{}, [&](auto&) { plan.wait(); });
            });
            for (const auto& rank : ranks) {
              REQUIRE_MESSAGE(rank.value, rank.description());
              CHECK((rank.value->how == way::returned || rank.value->how == way::communication_error));
            }
          }
    });
}

TEST_CASE("segments that are combined vector by vector") {
  const int size = 4;
  auto inputs = gradients_of<double>(size);
  for (auto& gradient : inputs)
    for (auto x = segs.offset(2); x < segs.offset(3); ++x) gradient[x] *= 1e170;
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto expected = reduce_on_threads<double>(inputs, segs, adasum::rules::adasum{}, order, unchecked);
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{}, order);
      auto gradient = inputs[static_cast<std::size_t>(comm.rank())];
      plan.start(gradient);
      while (!plan.test()) std::this_thread::yield();
      CHECK(plan.wait().recombined_segments() > 0);
      return gradient;
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(same_bits(*rank.value, expected.front().gradient));
    }
  });
}

}  // namespace test_of_plan_overlap
