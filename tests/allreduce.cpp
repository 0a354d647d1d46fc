// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/schedules/cost.hpp>

#include "support/disagreements.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_allreduce {

using namespace adasum::test;

namespace {

/// One set of weights for all segments, pair by pair.
struct whole_model_rule {
  static constexpr std::string_view name = "whole_model_rule";
  bool whole_model() const { return true; }
  adasum::pair_weights operator()(const adasum::pair_gram& g) const { return adasum::rules::adasum{}(g); }
};

}  // namespace

TEST_CASE("every schedule, rule and number of ranks agrees with the oracle: float") {
  check_reductions<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 13, 200});
  check_reductions<float>({3, 6, 17}, {1001});
  check_reductions<float>({16, 33}, {200});
}

TEST_CASE("lengths and segments at the edges") {
  for (const int size : {1, 2, 3, 5, 8}) {
    CAPTURE(size);
    const auto check = [&](const adasum::segments& segs) {
      check_every_schedule(random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 7), segs,
                           adasum::rules::adasum{});
    };
    check({});               // no element, no segment
    check({0});              // no element
    check({0, 0, 0});        // and several segments
    check({0, 1, 0});        // fewer elements than ranks
    check({1, 1, 1, 1, 1});  // a segment for each element
    check({3, 0, 0, 4097});  // long enough for automatic to halve
  }
}

TEST_CASE("the report names what ran and counts what this rank sent") {
  // Of the shortest, records travel at the end of elements' messages; of the longest, in messages of their own.
  constexpr std::size_t longest = 33'011;  // a 16th is more than 8 KiB
  for (const std::size_t length : {std::size_t{127}, std::size_t{10'003}, longest})
    for (const int size : {1, 2, 3, 4, 5, 6, 8, 9, 16}) {
      const adasum::segments segs{length - 27, 0, 27};
      CAPTURE(length);
      const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 5);
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(size);
        CAPTURE(name);
        const adasum::schedule_input what{segs.total(), sizeof(float), segs.size(), true};
        const schedule_simulation simulation(order, size, what);
        const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
          const counting_communicator counted(comm);
          auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
          auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, counted, segs, order,
                                                    adasum::options{.check_agreement = false});
          const auto made = counted.sent();
          const auto found = plan(gradient);
          auto sent = counted.sent();
          sent.all_bytes -= made.all_bytes;
          sent.messages -= made.messages;
          sent.exchanges -= made.exchanges;
          CHECK(made.elements_bytes == 0);
          CHECK(made.exchanges == static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(size - 1))));
          return std::pair(sent, found);
        });
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
          const auto& [sent, found] = *ranks[r].value;
          CHECK(found.bytes_sent() == sent.all_bytes);
          const auto elements_bytes = simulation.elements_sent(r) * sizeof(float);
          CHECK(sent.elements_bytes >= elements_bytes);
          if (length == longest) CHECK(sent.elements_bytes == elements_bytes);
          const auto model = adasum::schedules::cost_of(order, static_cast<int>(r), size, what);
          CHECK(model.elements == simulation.elements_sent(r));
          CHECK(model.bytes == sent.all_bytes);
          CHECK(model.messages == sent.messages);
          CHECK(model.exchanges == sent.exchanges);
        }
      });
    }
}

TEST_CASE("automatic reports the schedule that it chose") {
  const auto schedule_for = [](std::size_t length, bool keeps_plan) {
    const auto gradients = random_gradients<float>(2, length, 3);
    return reduce_on_threads<float>(gradients, adasum::segments{length}, adasum::rules::adasum{},
                                    adasum::schedules::automatic{}, adasum::options{.keep_plan = keeps_plan})
        .front()
        .found;
  };
  CHECK(schedule_for(8, false).schedule() == "recursive_doubling");
  CHECK(schedule_for(10'000, false).schedule() == "recursive_halving");
  CHECK(schedule_for(10'000, true).schedule() == "shared_memory");
}

TEST_CASE("a rule that needs no inner products need not be measured") {
  const adasum::segments segs{5, 0, 30};
  const auto gradients = random_gradients<float>(5, segs.total(), 9);
  const auto expected = expectation::of<float>(adasum::rules::mean{}, gradients, segs);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto ranks = reduce_on_threads<float>(gradients, segs, adasum::rules::mean{}, order,
                                                adasum::options{.measure = adasum::measuring::when_needed});
    check_same_on_all_ranks(ranks);
    const auto& [gradient, found] = ranks.front();
    CHECK(worst_error_over_bound(gradient, expected.exact.values, expected.bounds, segs) <= 1);
    CHECK_FALSE(found.measured());
    CHECK(std::isnan(found.norm(0, 0)));
    CHECK(std::isnan(found.result_norm(2)));
    CHECK(found.weight(4, 2) == doctest::Approx(0.2));
  });
}

TEST_CASE("what follows the gradient comes in any order; what is left out has its default") {
  const adasum::segments segs{40, 23};
  const auto gradients = random_gradients<float>(3, segs.total(), 31);
  const auto of = [&](const auto& call) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      const adasum::report found = call(comm, gradient);
      return std::pair(gradient, std::string(found.rule()) + " by " + std::string(found.schedule()) + ", " +
                                     std::to_string(found.segments()) + (found.measured() ? "" : ", not measured"));
    });
    for (const auto& rank : ranks) REQUIRE_MESSAGE(rank.value, rank.description());
    return *ranks.front().value;
  };
  const adasum::serial_space exec;
  const adasum::rules::mean mean;
  const adasum::schedules::recursive_halving halving;
  constexpr auto when_needed = adasum::measuring::when_needed;

  const auto all = of([&](const auto& comm, auto& g) {
    return adasum::combine_allreduce(exec, comm, g, segs, mean, halving, adasum::options{.measure = when_needed});
  });
  CHECK(all.second == "mean by recursive_halving, 2, not measured");
  CHECK(all == of([&](const auto& comm, auto& g) {
          return adasum::combine_allreduce(exec, comm, g, {.measure = when_needed}, halving, segs, mean);
        }));
  CHECK(all == of([&](const auto& comm, auto& g) {
          return adasum::plan_allreduce<float>(exec, comm, segs, halving, {.measure = when_needed}, mean)(g);
        }));

  const auto least = of([&](const auto& comm, auto& g) { return adasum::adasum_allreduce(exec, comm, g); });
  CHECK(least.second == "adasum by shared_memory, 1");
  CHECK(least == of([&](const auto& comm, auto& g) { return adasum::combine_allreduce(exec, comm, g); }));
  CHECK(least == of([&](const auto& comm, auto& g) {
          return adasum::adasum_allreduce(exec, comm, g, adasum::schedules::shared_memory{},
                                          adasum::segments{g.size()});
        }));
  CHECK(of([&](const auto& comm, auto& g) { return adasum::adasum_allreduce(exec, comm, g, halving, segs); }).second ==
        "adasum by recursive_halving, 2");
}

TEST_CASE("errors name the call that was made") {
  const adasum::serial_space exec;
  const adasum::self_communicator alone;
  std::vector<double> gradient(5);
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const adasum::bad_input& wrong) {
      return wrong.what();
    }
    return "nothing was thrown";
  };
  const adasum::segments longer{6};
  CHECK(message([&] { adasum::adasum_allreduce(exec, alone, gradient, longer); }) ==
        "adasum::adasum_allreduce: the segments hold 6 elements in all, the gradient has 5");
  CHECK(message([&] { adasum::combine_allreduce(exec, alone, gradient, longer); }) ==
        "adasum::combine_allreduce: the segments hold 6 elements in all, the gradient has 5");
  constexpr auto wire = adasum::wire_format::bfloat16;
  const auto begins_with = [&](std::string_view call, const std::string& text) {
    CAPTURE(text);
    CHECK(text.starts_with(std::string(call) + ": options::wire"));
  };
  begins_with("adasum::adasum_allreduce",
              message([&] { adasum::adasum_allreduce(exec, alone, gradient, {.wire = wire}); }));
  begins_with("adasum::combine_allreduce",
              message([&] { adasum::combine_allreduce(exec, alone, gradient, {.wire = wire}); }));
  begins_with("adasum::plan_allreduce",
              message([&] { (void)adasum::plan_allreduce<double>(exec, alone, 5, {.wire = wire}); }));
  begins_with("adasum::plan_bucketed", message([&] {
                (void)adasum::plan_bucketed<double>(exec, alone, std::vector{2, 3}, 1024, {.wire = wire});
              }));
  for (const auto timeout : {std::chrono::seconds(0), std::chrono::seconds(-1)})
    CHECK(message([&] {
            adasum::adasum_allreduce(exec, alone, gradient, {.timeout = timeout});
          }).starts_with("adasum::adasum_allreduce: options::timeout is "));
}

TEST_CASE("a rule with state, given as an lvalue, is updated; as a constant or a temporary, it is used as a copy") {
  const auto gradients = random_gradients<float>(3, 40, 7);
  const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
    adasum::rules::adacons rule{.momentum = 0.9};
    const auto constant = rule;
    for (int step = 0; step < 2; ++step) {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      adasum::combine_allreduce(adasum::serial_space{}, comm, gradient, rule, unchecked);
      gradient = gradients[static_cast<std::size_t>(comm.rank())];
      adasum::combine_allreduce(adasum::serial_space{}, comm, gradient, constant, unchecked);
    }
    return std::pair(rule.sorted_average, constant.sorted_average);
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    REQUIRE(rank.value->first.size() == 1);
    CHECK(rank.value->first[0].size() == 3);
    CHECK(rank.value->second.empty());
  }
}

TEST_CASE("no segments, and no elements: every call returns, under rules of every kind") {
  const auto check = [](const auto& comm, const auto& rule, const adasum::segments& cut) {
    const adasum::serial_space space;
    std::vector<float> gradient, out;
    const std::vector<std::vector<float>> three(3);
    CHECK(adasum::combine(space, three, out, rule, cut).segments() == cut.size());
    for (const auto& choices : {checked, unchecked}) {
      CHECK(adasum::combine_allreduce(space, comm, gradient, rule, cut, choices).segments() == cut.size());
      auto plan = adasum::plan_allreduce<float>(space, comm, cut, rule, choices);
      for (int run = 0; run < 2; ++run) CHECK(plan(gradient).segments() == cut.size());
      CHECK(plan.buffer().empty());
      CHECK(plan().segments() == cut.size());
    }
    if constexpr (adasum::pairwise_rule<std::remove_cvref_t<decltype(rule)>>) {
      auto total = adasum::plan_accumulator<float>(space, cut, rule);
      for (int i = 0; i < 3; ++i) total.add(gradient);
      CHECK(total.gradient().empty());
    }
  };
  for (const int size : {1, 2, 3, 5}) {
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      for (const auto& cut : {adasum::segments{}, adasum::segments{0}, adasum::segments{0, 0}}) {
        check(comm, adasum::rules::adasum{}, cut);
        check(comm, adasum::rules::mean{}, cut);
        check(comm, adasum::rules::unit_mean{}, cut);
        check(comm, adasum::rules::adacons{}, cut);
        check(comm, whole_model_rule{}, cut);
      }
      return true;
    });
    for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
  }
}

}  // namespace test_of_allreduce
