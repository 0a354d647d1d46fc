// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/allocations.hpp"
#include "support/disagreements.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_overlap {

/// Reductions beside other work, over MPI.

using namespace adasum::test;

namespace {

const adasum::serial_space space;

static_assert(adasum::posting_communicator<adasum::mpi_communicator, adasum::serial_space>);

std::vector<float> gradient_of_this_rank(std::size_t length, std::uint64_t seed = 83) {
  return random_gradients<float>(static_cast<std::size_t>(world_size()), length,
                                 seed)[static_cast<std::size_t>(world_rank())];
}

}  // namespace

TEST_CASE("start, test and wait give the bits of the blocking call, short and long") {
  // Pieces of 1000 bytes: many messages for one exchange.
  for (const std::size_t piece : {std::size_t{1000}, adasum::mpi_communicator::default_piece_limit})
    for (const std::size_t length : {3u, 257u, 40000u}) {
      const adasum::mpi_communicator comm{MPI_COMM_WORLD, piece};
      const adasum::segments segs{length / 3, length - length / 3};
      const auto input = gradient_of_this_rank(length);
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        CAPTURE(length);
        for (const auto& choices : {unchecked, checked}) {
          auto plan = adasum::plan_allreduce<float>(space, comm, segs, adasum::rules::adasum{}, order, choices);
          auto expected = input;
          plan(expected);
          for (int run = 0; run < 3; ++run) {
            auto gradient = input;
            plan.start(gradient);
            if (run == 1)
              while (!plan.test()) std::this_thread::yield();
            if (run == 2 && world_rank() == 0) plan.test();
            CHECK(plan.wait().contributions() == static_cast<std::size_t>(world_size()));
            CHECK(same_bits(gradient, expected));
          }
        }
      });
    }
}

TEST_CASE("the same in shared memory") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{100, 0, 1000};
  const auto input = gradient_of_this_rank(segs.total());
  auto plan =
      adasum::plan_allreduce<float>(space, comm, segs, adasum::rules::adasum{}, adasum::schedules::shared_memory{});
  const auto reduced = [&](bool blocking) {
    std::ranges::copy(input, plan.buffer().begin());
    if (blocking) {
      plan();
    } else {
      plan.start();
      while (!plan.test()) std::this_thread::yield();
      plan.wait();
    }
    return std::vector(plan.buffer().begin(), plan.buffer().end());
  };
  const auto expected = reduced(true);
  CHECK(same_bits(reduced(false), expected));
  CHECK(same_bits(reduced(false), expected));
  auto elsewhere = input;
  plan.start(elsewhere);
  plan.wait();
  CHECK(same_bits(elsewhere, expected));
}

TEST_CASE("start does not wait for a rank that comes later") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto gradient = gradient_of_this_rank(1000);
  auto plan = adasum::plan_allreduce<float>(space, comm, adasum::segments{1000});
  // The last rank starts when it has been told that all others have started, which would never be if that blocked.
  const int last = world_size() - 1;
  if (world_rank() == last) {
    for (int rank = 0; rank < last; ++rank) MPI_Recv(nullptr, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    plan.start(gradient);
  } else {
    plan.start(gradient);
    CHECK_FALSE(plan.test());
    MPI_Send(nullptr, 0, MPI_BYTE, last, 0, MPI_COMM_WORLD);
  }
  plan.wait();
  CHECK(same_on_all_ranks(gradient));
}

TEST_CASE("buckets in other orders on other ranks") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const std::vector<std::size_t> lengths{300, 5, 0, 4000, 77, 1000, 1000};
  const auto whole = gradient_of_this_rank(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
  auto buckets = adasum::plan_bucketed<float>(space, comm, lengths, 8000);
  CHECK(buckets.buckets() == 4);
  std::vector<float> first;
  for (std::uint64_t pass = 0; pass < 8; ++pass) {
    uniform_numbers random(10 * pass + static_cast<std::uint64_t>(world_rank()));
    std::vector<std::size_t> left(lengths.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::vector<std::vector<float>> mine;
    auto at = whole.begin();
    for (const auto length : lengths) {
      mine.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
      at += static_cast<std::ptrdiff_t>(length);
    }
    while (!left.empty()) {
      const auto next = left.begin() + static_cast<std::ptrdiff_t>(random.below(left.size()));
      buckets.ready(*next, mine[*next]);
      left.erase(next);
    }
    CHECK_NOTHROW(buckets.wait());
    std::vector<float> result;
    for (const auto& piece : mine) result.insert(result.end(), piece.begin(), piece.end());
    CHECK(same_on_all_ranks(result));
    if (pass == 0) first = result;
    CHECK(same_bits(result, first));
  }
}

TEST_CASE("buckets that are weighed together: the bits of a plan for the whole gradient, and nobody hangs") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{300, 5, 0, 4000, 77, 1000, 1000};
  const adasum::rules::adacons rule{.momentum = 0.5};
  const auto check = [&](const auto& order) {
    auto whole = adasum::plan_allreduce<double>(space, comm, segs, rule, order);
    auto buckets = adasum::plan_bucketed<double>(space, comm, segs, 16000, rule, order);
    const auto pass = [&](std::uint64_t seed, std::size_t missing) {
      uniform_numbers random(10 * seed + static_cast<std::uint64_t>(world_rank()));
      std::vector<double> mine(segs.total());  // whole numbers: their products add up to the same in any order
      for (auto& x : mine) x = static_cast<double>(random.below(17)) - 8;
      for (std::size_t i = segs.size(); i-- > 0;) {
        std::ranges::copy(std::span(mine).subspan(segs.offset(i), segs.length(i)), buckets.gradient(i).begin());
        if (i != missing) buckets.ready(i);
      }
      return mine;
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto mine = pass(seed, segs.size());
      CHECK_NOTHROW(buckets.wait());
      whole(mine);
      for (std::size_t i = 0; i < segs.size(); ++i)
        CHECK(std::ranges::equal(buckets.gradient(i), std::span(mine).subspan(segs.offset(i), segs.length(i))));
    }
    pass(9, world_rank() == world_size() - 1 ? 3 : segs.size());
    CHECK_THROWS_AS(buckets.wait(), adasum::error);
    pass(10, segs.size());
    CHECK_NOTHROW(buckets.wait());
  };
  check(adasum::schedules::all_to_all{});
  check(adasum::schedules::automatic{});
}

TEST_CASE("one rank with bad input, a plan destroyed in flight, a parameter that is not ready: nobody hangs") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{17, 0, 30, 4};
  const auto input = gradient_of_this_rank(segs.total());
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    for (int culprit = 0; culprit < world_size(); ++culprit) {
      const bool bad = world_rank() == culprit;
      CAPTURE(culprit);
      auto plan = adasum::plan_allreduce<float>(space, comm, segs, adasum::rules::adasum{}, order, unchecked);
      auto gradient = input;
      if (bad) gradient.push_back(0);
      plan.start(gradient);
      while (!plan.test()) std::this_thread::yield();
      const auto end = end_of(std::vector<float>{}, [&](auto&) { plan.wait(); });
      CHECK_MESSAGE(end.how == (bad ? way::bad_input : way::communication_error), to_string(end.how), ": ",
                    end.message);
      auto again = input;
      plan.start(again);
      CHECK_NOTHROW(plan.wait());
      CHECK(same_on_all_ranks(again));

      {
        auto doomed = adasum::plan_allreduce<float>(space, comm, segs, adasum::rules::adasum{}, order, unchecked);
        again = input;
        doomed.start(again);
        if (!bad) {
          const auto how = end_of(std::vector<float>{}, [&](auto&) { doomed.wait(); }).how;
          CHECK((how == way::communication_error || how == way::returned));
        }
      }

      auto buckets = adasum::plan_bucketed<float>(space, comm, segs, 30 * sizeof(float), adasum::rules::adasum{}, order,
                                                  unchecked);
      for (std::size_t i = 0; i < 4; ++i) {
        std::ranges::fill(buckets.gradient(i), 1.0f);
        if (!bad || i != 2) buckets.ready(i);
      }
      const auto end_of_pass = end_of(std::vector<float>{}, [&](auto&) { buckets.wait(); });
      CHECK_MESSAGE(end_of_pass.how == (bad ? way::bad_input : way::communication_error), end_of_pass.message);
      CHECK(std::ranges::all_of(buckets.gradient(0), [](float x) { return x == 1; }));
      for (std::size_t i = 0; i < 4; ++i) buckets.ready(i);
      CHECK_NOTHROW(buckets.wait());
    }
  });
}

TEST_CASE("from the second run on, nothing of ours is allocated") {
  // What MPI itself allocates, it does not by operator new.
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto gradient = gradient_of_this_rank(5000);
  auto plan =
      adasum::plan_allreduce<float>(space, comm, adasum::segments{2000, 3000}, adasum::schedules::recursive_halving{});
  const auto run = [&] {
    plan.start(gradient);
    while (!plan.test()) std::this_thread::yield();
    plan.wait();
  };
  run();
  const auto before = allocations();
  run();
  run();
  CHECK(allocations() == before);
}

TEST_CASE("in shared memory, the program's own messages move while a rank waits") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto plan = adasum::plan_allreduce<float>(space, comm, adasum::segments{1000});
  auto gradient = gradient_of_this_rank(1000);
  // Too long to be sent before it is received: rank 1 comes to the reduction only when rank 0 lets messages move there.
  std::vector<char> bulk(8 << 20);
  MPI_Request request = MPI_REQUEST_NULL;
  if (world_size() > 1 && world_rank() == 0)
    MPI_Irecv(bulk.data(), static_cast<int>(bulk.size()), MPI_CHAR, 1, 5, MPI_COMM_WORLD, &request);
  if (world_rank() == 1) MPI_Send(bulk.data(), static_cast<int>(bulk.size()), MPI_CHAR, 0, 5, MPI_COMM_WORLD);
  plan(gradient);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_on_all_ranks(gradient));
}

TEST_CASE("a plan that is destroyed in flight, by message, although it has shared memory too") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto gradient = gradient_of_this_rank(1 << 20);
  bool failed = false;
  {
    auto plan = adasum::plan_allreduce<float>(space, comm, adasum::segments{1 << 20}, adasum::schedules::automatic{},
                                              unchecked);
    plan.buffer();
    // The others come when it has started: else they might be so far ahead that its part is done in start().
    if (world_rank() == 0) {
      plan.start(gradient);
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
      try {
        plan(gradient);
      } catch (const adasum::communication_error&) {
        failed = true;
      }
    }
  }
  CHECK(failed == (world_rank() != 0));
}

TEST_CASE("a rank that leaves its plans in flight destroys them, and idle ones in shared memory, in any order") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  if (comm.size() == 1) return;
  const auto plan_in_shared_memory = [&](std::size_t length) {
    return adasum::plan_allreduce<float>(space, comm, adasum::segments{length}, adasum::schedules::shared_memory{},
                                         unchecked);
  };
  const auto destroy = [](auto& plan) { plan = {}; };
  const auto gradient = gradient_of_this_rank(1000);
  for (const bool idle_first : {true, false})
    for (int culprit = 0; culprit < comm.size(); ++culprit) {
      CAPTURE(idle_first);
      CAPTURE(culprit);
      auto idle = plan_in_shared_memory(1000), in_flight = plan_in_shared_memory(1000);
      auto in_use = gradient;
      in_flight.start(in_use);
      if (comm.rank() == culprit) {
        destroy(idle_first ? idle : in_flight);
        destroy(idle_first ? in_flight : idle);
      } else {
        const auto how = end_of(std::vector<float>{}, [&](auto&) { in_flight.wait(); }).how;
        CHECK((how == way::communication_error || how == way::returned));
      }
      auto again = plan_in_shared_memory(3000);  // while the others still have theirs
      auto result = gradient_of_this_rank(3000);
      CHECK_NOTHROW(again(result));
      CHECK(same_on_all_ranks(result));
    }
}

TEST_CASE(
    "checked: one rank by another schedule, in messages only, or after buffer(), is a disagreement on all ranks") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  if (world_size() == 1) return;
  const bool differs = world_rank() == 1;
  const adasum::segments segs{30000};
  auto gradient = gradient_of_this_rank(segs.total());
  const auto disagrees = [&](const auto& call) {
    try {
      call();
    } catch (const adasum::agreement_error&) {
      return true;
    }
    return false;
  };
  const auto by = [&](const auto& order) {
    auto plan = adasum::plan_allreduce<float>(space, comm, segs, order, checked);
    plan(gradient);
  };
  using adasum::schedules::automatic;
  CHECK(disagrees([&] { differs ? by(adasum::schedules::recursive_halving{}) : by(automatic{}); }));
  CHECK(disagrees([&] { by(automatic{.in_place = !differs}); }));
  auto plan = adasum::plan_allreduce<float>(space, comm, segs, adasum::schedules::automatic{}, checked);
  plan(gradient);
  CHECK(disagrees([&] { differs ? void(plan.buffer()) : void(plan(gradient)); }));
  CHECK_NOTHROW(plan(gradient));
}

}  // namespace test_of_communicators_mpi_overlap
