// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_delta {

using namespace adasum::test;

namespace {

constexpr adasum::options unchecked{.check_agreement = false};

}  // namespace

TEST_CASE("delta_allreduce is the weights before plus the combination of the steps") {
  const adasum::segments segs{30, 0, 11, 100};
  const auto before = random_gradients<float>(1, segs.total(), 41).front();
  for (const int size : {1, 2, 3, 4, 5, 8})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(size);
      CAPTURE(name);
      auto weights = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 43);
      std::vector<std::vector<float>> steps = weights;
      for (std::size_t i = 0; i < weights.size(); ++i)
        for (std::size_t x = 0; x < segs.total(); ++x) {
          weights[i][x] = before[x] + weights[i][x] / 16;
          steps[i][x] = weights[i][x] - before[x];  // rounded to float, as the library does
        }
      const auto combined = reduce_on_threads<float>(steps, segs, adasum::rules::adasum{}, order);

      for (const bool before_in_plan : {true, false}) {
        CAPTURE(before_in_plan);
        const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
          auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, order, unchecked);
          auto mine = weights[static_cast<std::size_t>(comm.rank())];
          if (!before_in_plan) {
            const auto found = adasum::delta_allreduce(plan, before, mine);
            return reduced<float>{mine, found};
          }
          std::ranges::copy(before, plan.buffer().begin());
          const auto found = adasum::delta_allreduce(plan, plan.buffer(), mine);
          if (!std::ranges::equal(plan.buffer(), before)) throw std::logic_error("the weights before have changed");
          return reduced<float>{mine, found};
        });
        for (const auto& rank : ranks) {
          REQUIRE_MESSAGE(rank.value, rank.description());
          CHECK(same_bits(rank.value->gradient, ranks.front().value->gradient));
          CHECK(same_findings(rank.value->found, combined.front().found));
        }
        // The same steps to the bit, combined the same way; the last sum is rounded at most three times (mix_error).
        for (std::size_t x = 0; x < segs.total(); ++x) {
          const double step = combined.front().gradient[x], exact = before[x] + step;
          const auto slack = mix_error<float>(2, std::abs(before[x]) + std::abs(step), std::abs(exact));
          CHECK(std::abs(ranks.front().value->gradient[x] - exact) <= static_cast<double>(slack));
        }
      }
    });
}

TEST_CASE("delta_allreduce refuses what it cannot combine, and changes nothing") {
  const adasum::segments segs{6};
  auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, adasum::self_communicator{}, segs);
  std::vector<double> before(6, 1), weights(6, 2), shorter(5, 3);
  CHECK_THROWS_WITH_AS(adasum::delta_allreduce(plan, before, shorter),
                       "adasum::delta_allreduce: 6 weights before the step, "
                       "5 after it, and the plan is for 6",
                       adasum::bad_input);
  CHECK_THROWS_AS(adasum::delta_allreduce(plan, shorter, weights), adasum::bad_input);
  CHECK_THROWS_AS(adasum::delta_allreduce(plan, weights, weights), adasum::bad_input);
  std::vector<double> memory(9, 4);
  const std::span all(memory);
  CHECK_THROWS_WITH_AS(adasum::delta_allreduce(plan, all.first(6), all.last(6)), doctest::Contains("overlaps"),
                       adasum::bad_input);
  CHECK(weights == std::vector<double>(6, 2));
  CHECK(shorter == std::vector<double>(5, 3));
  CHECK(memory == std::vector<double>(9, 4));
}

TEST_CASE("delta_allreduce gives the weights back when the ranks disagree or a step is not finite") {
  const adasum::segments segs{4};
  const std::vector<double> before{1, 2, 3, 4}, after{11, 22, 33, 44};
  for (const bool infinite : {true, false}) {
    const auto ranks = on_ranks(2, [&](const adasum::thread_communicator& comm) {
      adasum::options choices;
      choices.check_agreement = true;
      choices.nonfinite = adasum::nonfinite_policy::raise;
      auto weights = after;
      if (infinite && comm.rank() == 1) weights[2] = std::numeric_limits<double>::infinity();
      if (!infinite && comm.rank() == 1) weights.push_back(55);  // an agreement_error on all ranks
      auto plan =
          adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, adasum::schedules::all_to_all{}, choices);
      try {
        adasum::delta_allreduce(plan, before, weights);
        weights.clear();
      } catch (const adasum::error&) {
      }
      return weights;
    });
    REQUIRE(ranks[0].value);
    CHECK(*ranks[0].value == after);  // these sums are exact
  }
}

namespace {

struct space_that_cannot_mix : adasum::serial_space {
  bool fails = false;
  friend bool operator==(const space_that_cannot_mix&, const space_that_cannot_mix&) = default;

  template <adasum::scalar T>
  void mix(const adasum::slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    if (fails) throw std::runtime_error("cannot mix");
    adasum::serial_space::mix<T>(window, vectors, weights, out);
  }
};

}  // namespace

TEST_CASE("delta_allreduce: an execution space that fails before the reduction leaves nobody waiting") {
  for (const bool checked : {false, true}) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      adasum::options choices;
      choices.check_agreement = checked;
      space_that_cannot_mix space;
      space.fails = comm.rank() == 1;
      auto plan =
          adasum::plan_allreduce<double>(space, comm, adasum::segments{4}, adasum::schedules::automatic{}, choices);
      const std::vector<double> before{1, 2, 3, 4};
      std::vector<double> weights{2, 3, 4, 5};
      adasum::delta_allreduce(plan, before, weights);
      return 0;
    });
    CHECK(ranks[1].message_of<std::runtime_error>() == "cannot mix");
    for (const std::size_t r : {0u, 2u})
      CHECK((checked ? ranks[r].threw<adasum::agreement_error>() : ranks[r].threw<adasum::communication_error>()));
  }
}

}  // namespace test_of_delta
