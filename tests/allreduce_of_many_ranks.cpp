// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>
#include <adasum/schedules/cost.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/bits.hpp"
#include "support/counting_space.hpp"
#include "support/disagreements.hpp"
#include "support/failing_calls.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_allreduce_of_many_ranks {

/// Up to 96 ranks, which are threads, in memory that they share: by levels.

using namespace adasum;
using namespace adasum::test;
using schedules::in_place_cost;

namespace {

#ifdef ADASUM_TEST_SANITIZED
const std::vector<int> sizes{8, 24};
#else
const std::vector<int> sizes{8, 24, 48, 64, 96};
#endif
const segments segs{7, 0, 1001, 1, 3000};

template <class Schedule>
std::vector<std::vector<reduced<float>>> three_runs(int size, const Schedule& order) {
  std::vector<std::vector<std::vector<float>>> gradients;
  for (std::uint64_t run = 0; run < 3; ++run)
    gradients.push_back(random_gradients<float>(static_cast<std::size_t>(size), segs.total(), run));
  return results_of(on_ranks(size, [&](const thread_communicator& comm) {
    auto plan = plan_allreduce<float>(serial_space{}, comm, segs, order, unchecked);
    std::vector<reduced<float>> runs;
    for (const auto& of_run : gradients) {
      auto mine = of_run[static_cast<std::size_t>(comm.rank())];
      const auto& found = plan(mine);
      runs.push_back({mine, found});
    }
    return runs;
  }));
}

}  // namespace

TEST_CASE("many ranks by levels: the bits and the reports of messages by the same levels, run after run") {
  for (const int size : sizes)
    for (const std::size_t radix : {2u, 8u}) {
      CAPTURE(size);
      CAPTURE(radix);
      const auto in_place = three_runs(size, schedules::shared_memory{radix}),
                 sent = three_runs(size, schedules::recursive_halving{radix});
      for (std::size_t rank = 0; rank < in_place.size(); ++rank)
        for (std::size_t run = 0; run < 3; ++run) {
          const auto &mine = in_place[rank][run], &first = in_place[0][run], &theirs = sent[rank][run];
          CHECK(same_bits(mine.gradient, theirs.gradient));
          CHECK(same_findings(mine.found, first.found));
          CHECK(mine.found.bytes_sent() == 0);
          CHECK(theirs.found.bytes_sent() > 0);
          for (std::size_t k = 0; k < segs.size(); ++k)
            for (std::size_t i = 0; i < in_place.size(); ++i) {
              CHECK(mine.found.norm(i, k) == theirs.found.norm(i, k));
              CHECK(mine.found.weight(i, k) == theirs.found.weight(i, k));
            }
        }
    }
}

TEST_CASE("by levels: groups that recombine segments meet groups that do not, which have added less often") {
  // To recombine a level of two ranks takes an even number of sums more, one of three an odd number.
  for (const int size : {8, 9, 12, 15, 18, 24, 27}) {
    CAPTURE(size);
    // In two segments, the second gradient nearly cancels the first, and the last one its neighbour.
    auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 29);
    const auto last = gradients.size() - 1;
    for (auto x = segs.offset(2); x < segs.offset(3); ++x) gradients[1][x] = -gradients[0][x] + 1e-12 * gradients[1][x];
    for (auto x = segs.offset(4); x < segs.offset(5); ++x)
      gradients[last - 1][x] = -gradients[last][x] + 1e-12 * gradients[last - 1][x];
    const auto in_place = reduce_on_threads<double>(gradients, segs, rules::adasum{}, schedules::shared_memory{2}),
               sent = reduce_on_threads<double>(gradients, segs, rules::adasum{}, schedules::recursive_halving{2});
    CHECK(sent.front().found.recombined_segments() > 0);
    for (std::size_t rank = 0; rank < gradients.size(); ++rank)
      CHECK(same_bits(in_place[rank].gradient, sent[rank].gradient));
  }
}

TEST_CASE("many ranks: the default works in memory that they share") {
  for (const int size : sizes) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 11);
    const auto expected = expectation::of<float>(rules::adasum{}, gradients, segs);
    const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
      auto plan = plan_allreduce<float>(serial_space{}, comm, segs);
      auto mine = gradients[static_cast<std::size_t>(comm.rank())];
      const auto& found = plan(mine);
      return reduced<float>{mine, found};
    }));
    check_same_on_all_ranks(ranks);
    check_reduced(ranks.front(), expected, segs);
    CHECK(ranks.front().found.schedule() == "shared_memory");
  }
}

TEST_CASE("many ranks: rules of the whole Gram matrix, in one stage") {
  for (const int size : sizes) {
    CAPTURE(size);
    const auto gradients = random_gradients<double>(static_cast<std::size_t>(size), segs.total(), 5);
    std::vector<double> expected(segs.total());
    combine(serial_space{}, gradients, expected, rules::geometric_median{}, segs);
    const auto ranks =
        reduce_on_threads<double>(gradients, segs, rules::geometric_median{}, schedules::shared_memory{});
    check_same_on_all_ranks(ranks);
    double error = 0, largest = 0;
    for (std::size_t x = 0; x < expected.size(); ++x) {
      error = std::max(error, std::abs(ranks.front().gradient[x] - expected[x]));
      largest = std::max(largest, std::abs(expected[x]));
    }
    CHECK(error <= 1e-10 * largest);
  }
}

TEST_CASE("many ranks by levels: a part for each rank, with the bits of an allreduce") {
  for (const int size : {24, 48}) {
    CAPTURE(size);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 17);
    const auto whole = reduce_on_threads<float>(gradients, segs, rules::adasum{}, schedules::shared_memory{});
    const auto right = results_of(on_ranks(size, [&](const thread_communicator& comm) {
      auto plan = plan_reduce_scatter<float>(serial_space{}, comm, segs, schedules::shared_memory{});
      bool all = true;
      for (int run = 0; run < 3; ++run) {
        auto mine = gradients[static_cast<std::size_t>(comm.rank())];
        all = all && plan(mine).bytes_sent() == 0;
        for (auto x = plan.part().begin; x < plan.part().end; ++x) all = all && mine[x] == whole.front().gradient[x];
      }
      return all;
    }));
    for (const bool one : right) CHECK(one);
  }
}

TEST_CASE("many ranks: what each reads of the others and writes to them is what the model counts") {
  for (const int size : {2, 5, 8, 9, 16, 22, 24, 48, 64, 96})
    for (const std::size_t radix : {2u, 4u, 8u}) {
      CAPTURE(size);
      CAPTURE(radix);
      const schedules::shared_memory order{radix};
      const schedule_input what{.length = segs.total(), .element_size = sizeof(float), .segments = segs.size()};
      const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
        auto mine = random_gradients<float>(1, segs.total(), static_cast<std::uint64_t>(comm.rank())).front();
        touched<float> counts{mine.data(), mine.size()};
        counting_space<float> space;
        space.counts = &counts;
        auto plan = plan_allreduce<float>(space, comm, segs, order, unchecked);
        counts.read = counts.written = 0;
        plan(mine);
        return counts;
      }));
      for (int rank = 0; rank < size; ++rank) {
        const in_place_cost model(order.stages(rank, size, what), rank, what);
        CHECK(ranks[static_cast<std::size_t>(rank)].read == model.read);
        CHECK(ranks[static_cast<std::size_t>(rank)].written == model.written);
        CHECK(model.read <= 2 * segs.total() * sizeof(float));  // not P gradients: less than one, twice
      }
    }
}

TEST_CASE("by levels: one that fails anywhere keeps nobody waiting, and the plan works again") {
  // Levels of 2 and 3 ranks, and of 3 and 3.
  const schedules::shared_memory order{.radix = 2};
  for (const int size : {6, 9})
    for (const bool posted : {false, true})
      for (const int culprit : {0, 4, size - 1}) {
        const auto gradients = random_gradients<float>(static_cast<std::size_t>(size), segs.total(), 23);
        const auto expected = reduce_on_threads<float>(gradients, segs, rules::adasum{}, order).front().gradient;
        CAPTURE(size);
        CAPTURE(posted);
        check_failing_calls(
            static_cast<std::size_t>(culprit), gradients, expected,
            [&](const auto& function) { return on_ranks(size, function); },
            [&](const auto& space, const thread_communicator& comm) {
              return [plan = plan_allreduce<float>(space, comm, segs, order, unchecked),
                      posted](std::vector<float>& gradient) mutable {
                if (!posted) return plan(gradient), void();
                plan.start(gradient);
                while (!plan.test()) std::this_thread::yield();
                plan.wait();
              };
            });
      }
}

namespace {

/// Waits before it mixes.
struct slow_space : serial_space {
  std::atomic<bool>* may_go_on = nullptr;
  friend bool operator==(const slow_space&, const slow_space&) = default;
  template <scalar T>
  void mix(const slice& window, std::span<const T* const> vectors, const double* weights, T* out) const {
    while (may_go_on && !*may_go_on) std::this_thread::yield();
    serial_space::mix<T>(window, vectors, weights, out);
  }
};

}  // namespace

TEST_CASE("by levels: one that goes on no more is an error on every rank, and it is named") {
  constexpr int size = 24;
  std::atomic<bool> may_go_on = false;
  const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
    slow_space space;
    if (comm.rank() == 13) space.may_go_on = &may_go_on;
    auto plan = plan_allreduce<float>(space, comm, segs, schedules::shared_memory{},
                                      {.check_agreement = false, .timeout = std::chrono::seconds(1)});
    // Those that fail leave only when rank 13 works on their gradients no more.
    std::jthread release([&] {
      if (comm.rank() != 13) return;
      std::this_thread::sleep_for(std::chrono::seconds(3));
      may_go_on = true;
    });
    return end_of(counted(segs.total()), [&](auto& g) { plan(g); });
  });
  std::string messages;
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(rank.value->how == way::communication_error);
    messages += rank.value->message;
  }
  CHECK(messages.find("rank 13 did not come within 1 second") != std::string::npos);
}

}  // namespace test_of_allreduce_of_many_ranks
