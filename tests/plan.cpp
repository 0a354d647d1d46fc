// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/schedules/cheapest.hpp>

#include "support/allocations.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_plan {

/// Plans: what is set up once and reused.

using namespace adasum::test;

namespace {

constexpr adasum::options unchecked{.check_agreement = false};
constexpr adasum::options by_messages{.check_agreement = false, .keep_plan = false};  // a single call by automatic

const adasum::segments segs{40, 0, 7, 153};

template <class Comm, class Schedule>
auto make_plan(const Comm& comm, const Schedule& order, bool checked = false) {
  auto choices = unchecked;
  choices.check_agreement = checked;
  return adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{}, order, choices);
}

/// Allocations of the calls after the first, and whether each gave the same bits.
struct repeated {
  std::size_t allocations = 0;
  bool same = true;
};

template <class Comm, class Schedule>
repeated run_repeatedly(const Comm& comm, const Schedule& order, const std::vector<float>& gradient,
                        bool checked = false) {
  auto plan = make_plan(comm, order, checked);
  auto first = gradient, again = gradient;
  plan(first);
  repeated found;
  for (int run = 0; run < 5; ++run) {
    std::ranges::copy(gradient, again.begin());
    const auto before = allocations();
    plan(again);
    found.allocations += allocations() - before;
    found.same &= same_bits(first, again);
  }
  return found;
}

}  // namespace

TEST_CASE("the allocation counter counts") {
  const auto before = allocations();
  ::operator delete(::operator new(4));  // a call, which no compiler leaves out, as it may a new-expression
  CHECK(allocations() == before + 1);
}

TEST_CASE("from the second run on a plan allocates nothing") {
  for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto alone =
        run_repeatedly(adasum::self_communicator{}, order, random_gradients<float>(1, segs.total(), 1)[0]);
    CHECK(alone.allocations == 0);
    CHECK(alone.same);
    for (const int size : {2, 3, 4, 5, 8})
      for (const bool checked : {false, true}) {
        CAPTURE(size);
        CAPTURE(checked);
        const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 2);
        const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
          return run_repeatedly(comm, order, gradients[static_cast<std::size_t>(comm.rank())], checked);
        });
        for (const auto& rank : ranks) {
          REQUIRE_MESSAGE(rank.value, rank.description());
          CHECK(rank.value->allocations == 0);
          CHECK(rank.value->same);
        }
      }
  });
}

namespace {

/// Of n vectors at once.
struct plain_mean {
  static constexpr std::string_view name = "plain mean";
  void operator()(adasum::gram_view, std::span<double> weights) const {
    std::ranges::fill(weights, 1 / static_cast<double>(weights.size()));
  }
};

}  // namespace

TEST_CASE("nor where more vectors meet than there is room for on the stack") {
  constexpr int size = 70;
  const auto gradients = random_gradients<float>(size, segs.total(), 2);
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, plain_mean{},
                                              adasum::schedules::all_to_all{}, unchecked);
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    plan(gradient);
    const auto before = allocations();
    plan(gradient);
    return allocations() - before;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == 0);
  }
}

TEST_CASE("a plan reduces its own buffer, and is the one-shot call otherwise") {
  const int size = 5;
  const auto gradients = random_gradients<float>(size, segs.total(), 3);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto expected = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order, unchecked);
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
      auto plan = make_plan(comm, order);
      const auto memory = plan.buffer();
      std::ranges::copy(mine, memory.begin());
      const auto& found = plan();
      const bool stable = plan.buffer().data() == memory.data() && &plan.last_report() == &found;
      return std::pair(reduced<float>{std::vector(memory.begin(), memory.end()), found}, stable);
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(same_bits(rank.value->first.gradient, expected.front().gradient));
      CHECK(same_findings(rank.value->first.found, expected.front().found));
      CHECK(rank.value->second);
    }
  });
}

TEST_CASE("automatic works in shared memory, and leaves the plan's buffer alone") {
  using adasum::schedules::automatic, adasum::schedules::shared_memory;
  // Short enough to be placed for all ranks, and longer than that.
  for (const auto& cut : {segs, adasum::segments{4000, 0, 7, 1000}})
    for (const int size : {2, 3, 5}) {
      CAPTURE(cut.total());
      CAPTURE(size);
      const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), cut.total(), 6);
      const auto in_place =
          reduce_on_threads<float>(gradients, cut, adasum::rules::adasum{}, shared_memory{}, unchecked);
      const auto sent = reduce_on_threads<float>(gradients, cut, adasum::rules::adasum{}, automatic{}, by_messages);
      CHECK(sent.front().found.bytes_sent() > 0);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
        auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, cut, automatic{}, unchecked);
        auto before = mine, after = mine;
        const auto first = plan(before);
        std::ranges::fill(plan.buffer(), 7.0f);
        const auto second = plan(after);
        const bool untouched = std::ranges::count(plan.buffer(), 7.0f) == static_cast<std::ptrdiff_t>(cut.total());
        return std::tuple(reduced<float>{before, first}, reduced<float>{after, second}, untouched);
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        const auto& [before, after, untouched] = *rank.value;
        CHECK(same_bits(before.gradient, in_place.front().gradient));
        CHECK(same_findings(before.found, in_place.front().found));
        CHECK(before.found.bytes_sent() == 0);
        CHECK(
            same_bits(after.gradient, in_place.front().gradient));  // threads reach each other's memory without a copy
        CHECK(same_findings(after.found, in_place.front().found));
        CHECK(untouched);
      }
    }
}

namespace {

/// Threads that find no room for memory of their own, as processes may.
struct crowded_communicator : adasum::thread_communicator {
  memory share(std::size_t bytes) const {
    throw adasum::shared_memory_error("no room for " + std::to_string(bytes) + " bytes");
  }
};

}  // namespace

TEST_CASE("where there is no room for shared memory, automatic sends messages, and direct is an error") {
  const int size = 3;
  const auto gradients = random_gradients<float>(size, segs.total(), 7);
  const auto expected =
      reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, adasum::schedules::automatic{}, by_messages);
  for (const bool checked : {false, true}) {
    CAPTURE(checked);
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& threads) {
      const crowded_communicator comm{threads};
      CHECK_THROWS_AS(make_plan(comm, adasum::schedules::shared_memory{}, checked), adasum::shared_memory_error);
      auto plan = make_plan(comm, adasum::schedules::automatic{}, checked);
      auto mine = gradients[static_cast<std::size_t>(comm.rank())];
      const auto found = plan(mine);
      std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], plan.buffer().begin());
      plan();
      return std::pair(reduced<float>{mine, found},
                       same_bits(std::vector(plan.buffer().begin(), plan.buffer().end()), mine));
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(same_bits(rank.value->first.gradient, expected.front().gradient));
      CHECK(rank.value->first.found.schedule() == expected.front().found.schedule());
      CHECK(rank.value->second);
    }
  }
}

TEST_CASE("short gradients in shared memory: no rank overwrites what another still reads") {
  const int size = 4, runs = 200;
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(size * runs), segs.total(), 8);
  std::vector<std::vector<float>> expected;
  for (int run = 0; run < runs; ++run) {
    const auto first = gradients.begin() + run * size;
    expected.emplace_back(segs.total());
    adasum::adasum_tree(adasum::serial_space{}, std::vector(first, first + size), expected.back(), segs);
  }
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto plan = make_plan(comm, adasum::schedules::automatic{});
    uniform_numbers random(static_cast<std::uint64_t>(comm.rank()));
    int wrong = 0;
    for (int run = 0; run < runs; ++run) {
      auto mine = gradients[static_cast<std::size_t>(run * size + comm.rank())];
      if (random.below(4) == 0) std::this_thread::yield();
      plan(mine);
      wrong += !same_bits(mine, expected[static_cast<std::size_t>(run)]);
    }
    return wrong;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == 0);
  }
}

TEST_CASE("a plan can be moved") {
  const int size = 3;
  const auto gradients = random_gradients<float>(size, segs.total(), 4);
  const auto expected = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{},
                                                 adasum::schedules::recursive_halving{}, unchecked);
  const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
    auto first = make_plan(comm, adasum::schedules::recursive_halving{});
    std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], first.buffer().begin());
    std::vector<decltype(first)> plans;
    plans.push_back(std::move(first));
    plans.push_back(make_plan(comm, adasum::schedules::recursive_halving{}));  // the vector grows, and moves its plans
    plans.front()();
    const auto result = plans.front().buffer();
    return std::vector(result.begin(), result.end());
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(same_bits(*rank.value, expected.front().gradient));
  }
}

TEST_CASE("a plan knows its shape, and outlives the segments that it was made from") {
  auto plan = [] {
    const adasum::segments temporary{3, 4};
    return adasum::plan_allreduce<double>(adasum::serial_space{}, adasum::self_communicator{}, temporary);
  }();
  CHECK(plan.length() == 7);
  REQUIRE(plan.segments().size() == 2);
  CHECK(plan.segments().range(1) == adasum::index_range{3, 7});
  std::vector<double> gradient(7, 2);
  CHECK(plan(gradient).norm(0, 1) == doctest::Approx(4));
  CHECK(gradient == std::vector<double>(7, 2));
}

TEST_CASE("bad input to a plan of one rank") {
  const adasum::serial_space space;
  const adasum::self_communicator comm;
  auto plan = adasum::plan_allreduce<float>(space, comm, segs);
  std::vector<float> longer(201);
  CHECK_THROWS_WITH_AS(plan(longer), "adasum::allreduce_plan: the gradient has 201 elements, the plan is for 200",
                       adasum::bad_input);
  const std::size_t decreasing[] = {0, 5, 3};
  CHECK_THROWS_AS(adasum::plan_allreduce<float>(space, comm, adasum::segments_view{decreasing}), adasum::bad_input);
  CHECK_THROWS_AS(adasum::plan_allreduce<float>(space, comm, segs, adasum::schedules::recursive_halving{.radix = 1}),
                  adasum::bad_input);
}

TEST_CASE("one rank in the plan's buffer and the others in their own memory is a disagreement") {
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    auto plan = make_plan(comm, adasum::schedules::automatic{}, true);
    std::vector<float> gradient(segs.total(), 1);
    std::ranges::fill(plan.buffer(), 1.0f);
    if (comm.rank() == 1)
      plan();
    else
      plan(gradient);
    return 0;
  });
  for (const auto& rank : ranks) {
    const auto message = rank.message_of<adasum::agreement_error>().value_or("");
    for (const char* part : {"disagree on the location of the gradient", "copied to shared memory", "in the plan's buffer"})
      CHECK_MESSAGE(message.find(part) != std::string::npos, message);
  }
}

TEST_CASE("hierarchical allocates nothing either") {
  const auto ranks = on_ranks(5, [&](const adasum::thread_communicator& comm) {
    return run_repeatedly(comm, adasum::schedules::hierarchical{std::vector{0, 0, 1, 1, 1}, adasum::rules::mean{}},
                          random_gradients<float>(1, segs.total(), 7)[0], true);
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->allocations == 0);
  }
}

TEST_CASE("a part of the plan's buffer is refused, and the other ranks are told") {
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    auto plan = make_plan(comm, adasum::schedules::automatic{});
    const auto buffer = plan.buffer();
    std::ranges::fill(buffer, 1.0f);
    comm.rank() == 1 ? plan(buffer.first(3)) : plan(buffer);
    return 0;
  });
  for (std::size_t r = 0; r < 3; ++r)
    CHECK((r == 1 ? ranks[r].threw<adasum::bad_input>() : ranks[r].threw<adasum::communication_error>()));
}

TEST_CASE("segments without boundaries are refused") {
  CHECK_THROWS_AS(
      adasum::plan_allreduce<float>(adasum::serial_space{}, adasum::self_communicator{}, adasum::segments_view{}),
      adasum::bad_input);
  CHECK_THROWS_AS(adasum::plan_accumulator<float>(adasum::serial_space{}, adasum::segments_view{}), adasum::bad_input);
}

namespace {

/// Counts how often it was asked, which is its state.
struct counting_rule {
  static constexpr std::string_view name = "counting";
  int calls = 0;

  adasum::pair_weights operator()(const adasum::pair_gram&) {
    ++calls;
    return {0.5, 0.5};
  }
};

}  // namespace

TEST_CASE("a rule's state goes on where gradients lie, in the plan's buffer or elsewhere") {
  const auto ranks = on_ranks(2, [](const adasum::thread_communicator& comm) {
    const auto calls_of = [&](const auto& order) {
      auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, adasum::segments{4000}, counting_rule{},
                                                order, unchecked);
      std::vector<float> gradient(4000, 1);
      plan(gradient);
      plan(gradient);
      std::ranges::fill(plan.buffer(), 1.0f);
      plan();
      plan(gradient);
      return plan.current_rule().calls;
    };
    return std::pair(calls_of(adasum::schedules::automatic{}), calls_of(adasum::schedules::recursive_halving{}));
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == std::pair(4, 4));
  }
}

TEST_CASE("automatic works in place where that pays: Gram matrices that are smaller than gradients") {
  using adasum::schedules::automatic;
  CHECK(adasum::detail::pays_in_place(2, {256, 4, 1}));
  CHECK(adasum::detail::pays_in_place(16, {1 << 20, 4, 161}));
  CHECK(adasum::detail::pays_in_place(17, {1 << 20, 4, 1}));
  CHECK(adasum::detail::pays_in_place(64, {1 << 20, 4, 1}));
  CHECK_FALSE(adasum::detail::pays_in_place(16, {1 << 16, 4, 161}));
  CHECK_FALSE(adasum::detail::pays_in_place(1, {1 << 20, 4, 1}));
}

}  // namespace test_of_plan
