// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <adasum/schedule/cost.hpp>

#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

using namespace adasum::test;

TEST_CASE("every schedule, rule and number of ranks agrees with the oracle: float") {
  check_reductions<float>(all_rank_counts, {1, 13, 200, 1001});
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
  const adasum::segments segs{100, 0, 27};
  for (const int size : {1, 2, 3, 4, 5, 6, 8, 9, 16}) {
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 5);
    for_each_message_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      const adasum::problem what{segs.total(), sizeof(float), segs.size(), true};
      const schedule_simulation simulation(order, size, what);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        const counting_communicator counted(comm);
        auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
        const auto found = adasum::adasum_allreduce(adasum::serial_space{}, counted, gradient, segs, order,
                                                    adasum::options{.check_agreement = false});
        return std::pair(counted.sent(), found);
      });
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        REQUIRE_MESSAGE(ranks[r].value, ranks[r].description());
        const auto& [sent, found] = *ranks[r].value;
        CHECK(found.bytes_sent() == sent.all_bytes);
        CHECK(sent.elements_bytes == simulation.elements_sent(r) * sizeof(float));
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
  const auto schedule_for = [](std::size_t length) {
    const auto gradients = random_gradients<float>(2, length, 3);
    return reduce_on_threads<float>(gradients, adasum::segments{length}, adasum::rules::adasum{},
                                    adasum::schedules::automatic{})
        .front()
        .found;
  };
  CHECK(schedule_for(8).schedule() == "recursive_doubling");
  CHECK(schedule_for(10'000).schedule() == "recursive_halving");
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
