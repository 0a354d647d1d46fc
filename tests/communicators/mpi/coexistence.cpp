// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/disagreements.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_coexistence {

/// How reductions get along with the rest of an MPI program, and what they do when one rank is wrong.

using namespace adasum::test;

namespace {

const adasum::serial_space space;

}  // namespace

TEST_CASE("the caller's messages and the library's never meet") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const int left = (world_rank() + world_size() - 1) % world_size(), right = (world_rank() + 1) % world_size();
  int mine = 1000 + world_rank(), received = -1;
  MPI_Request requests[2];
  // In flight during all reductions: a receive that would take any message of this communicator, and a send with tag 0.
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    std::vector<float> gradient(64, 2);
    CHECK_NOTHROW(adasum::adasum_allreduce(space, comm, gradient, adasum::segments{64}, order));
    CHECK(gradient == std::vector<float>(64, 2));  // equal gradients: their mean
  });
  MPI_Isend(&mine, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
  std::vector<float> gradient(64, 2);
  CHECK_NOTHROW(adasum::adasum_allreduce(space, comm, gradient));
  CHECK(gradient == std::vector<float>(64, 2));
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(received == 1000 + left);
}

TEST_CASE("the caller's error handler stays") {
  for (const MPI_Errhandler handler : {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN}) {
    MPI_Comm callers = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &callers);
    MPI_Comm_set_errhandler(callers, handler);
    {
      const adasum::mpi_communicator comm{callers};
      std::vector<float> gradient(5, 1);
      CHECK_NOTHROW(adasum::adasum_allreduce(space, comm, gradient));
      MPI_Errhandler after{};
      MPI_Comm_get_errhandler(callers, &after);
      CHECK(after == handler);
      MPI_Errhandler_free(&after);
    }
    MPI_Comm_free(&callers);
  }
}

TEST_CASE("ranks that disagree all throw the same agreement_error") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for_each_disagreement([&](const std::string& mentions, const auto& call) {
    for (const int culprit : {0, world_size() - 1}) {
      CAPTURE(mentions);
      CAPTURE(culprit);
      const ending end = call(comm, comm.rank() == culprit);
      CHECK_MESSAGE(end.how == way::agreement_error, to_string(end.how), ": ", end.message);
      CHECK_MESSAGE(end.message.find(mentions) != std::string::npos, end.message);
      CHECK_MESSAGE(end.message.find("rank " + std::to_string(culprit)) != std::string::npos, end.message);
      CHECK(end.unchanged);
      CHECK(same_on_all_ranks(end.message));
    }
  });
}

TEST_CASE("one rank with bad input and no agreement checks: nobody hangs, and the next reduction is right") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{17, 0, 30, 4};
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(world_size()), segs.total(), 29);
  const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
  const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
  for_each_schedule([&](const auto& order, const std::string& name) {
    auto plan = adasum::plan_allreduce<float>(space, comm, segs, adasum::rules::adasum{}, order, unchecked);
    for (int culprit = 0; culprit < world_size(); ++culprit) {
      CAPTURE(name);
      CAPTURE(culprit);
      const bool bad = comm.rank() == culprit;
      auto gradient = mine;
      if (bad) gradient.push_back(0);
      const auto end = end_of(gradient, [&](auto& g) { plan(g); });
      CHECK_MESSAGE(end.how == (bad ? way::bad_input : way::communication_error), to_string(end.how), ": ",
                    end.message);
      auto again = mine;
      CHECK_NOTHROW(plan(again));
      CHECK(worst_error_over_bound(again, expected.exact.values, expected.bounds, segs) <= 1);
    }
  });
}

TEST_CASE("one rank's segments do not add up: an error on every rank, checked or not, and nothing is overwritten") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  constexpr std::size_t length = 100'000, guard = 1000;
  for (const bool check : {false, true})
    for (const auto& wrong : {adasum::segments{90'000}, adasum::segments{std::size_t{1} << 50}, adasum::segments{4, 5}})
      for_each_schedule([&](const auto& order, const std::string& name) {
        for (const int culprit : {0, world_size() - 1}) {
          CAPTURE(name);
          CAPTURE(wrong.total());
          CAPTURE(culprit);
          const bool bad = comm.rank() == culprit;
          std::vector<float> memory(length + 2 * guard, 3);
          const std::span<float> gradient(memory.data() + guard, length);
          const auto end = end_of(std::vector<float>{}, [&](auto&) {
            adasum::adasum_allreduce(space, comm, gradient, bad ? wrong : adasum::segments{length}, order,
                                     check ? checked : unchecked);
          });
          CHECK_MESSAGE(end.how == (check ? way::agreement_error
                                    : bad ? way::bad_input
                                          : way::communication_error),
                        to_string(end.how), ": ", end.message);
          if (bad || check) CHECK_MESSAGE(end.message.find("the segments hold") != std::string::npos, end.message);
          CHECK(std::ranges::count(memory, 3.0f) == static_cast<std::ptrdiff_t>(memory.size()));
          CHECK_NOTHROW(adasum::adasum_allreduce(space, comm, gradient, order, unchecked));
          CHECK(std::ranges::count(gradient, 3.0f) == static_cast<std::ptrdiff_t>(length));  // equal: their mean
        }
      });
}

TEST_CASE("one rank checks and the others do not, or plans differ unchecked: an error on every rank") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for (const int culprit : {0, world_size() - 1}) {
    const bool bad = comm.rank() == culprit;
    const auto some =
        end_of(counted(60), [&](auto& g) { adasum::adasum_allreduce(space, comm, g, bad ? checked : unchecked); });
    CHECK_MESSAGE(some.how == way::communication_error, some.message);
    const auto plans =
        end_of(counted(60), [&](auto&) { adasum::plan_allreduce<float>(space, comm, bad ? 60 : 61, unchecked); });
    CHECK_MESSAGE(plans.how == way::communication_error, plans.message);
    auto first = adasum::plan_allreduce<float>(space, comm, 60),
         second = adasum::plan_allreduce<float>(space, comm, 60);
    auto one = counted(60), other = counted(60);
    first.start(one);
    CHECK_THROWS_WITH_AS(second.start(other), doctest::Contains("another plan is in flight"), adasum::bad_input);
    CHECK_NOTHROW(first.wait());
    CHECK_NOTHROW(second(other));
    CHECK(one == other);
  }
}

TEST_CASE("nodes, and a hierarchy over them by messages and in shared memory") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto size = static_cast<std::size_t>(comm.size()), rank = static_cast<std::size_t>(comm.rank());
  CHECK(comm.nodes() == std::vector<int>(size, 0));  // tests run on one machine
  const adasum::segments segs{9, 0, 31};
  const auto gradients = random_gradients<double>(size, segs.total(), 61);
  std::vector<int> pairs;
  for (int r = 0; r < comm.size(); ++r) pairs.push_back(r / 2);
  for (const auto& nodes : {comm.nodes(), pairs}) {
    std::vector<std::vector<double>> means;
    for (int node = 0; node <= nodes.back(); ++node) {
      std::vector<std::vector<double>> members;
      for (std::size_t r = 0; r < size; ++r)
        if (nodes[r] == node) members.push_back(gradients[r]);
      means.emplace_back(segs.total());
      adasum::combine(space, members, means.back(), adasum::rules::mean{}, segs);
    }
    std::vector<double> expected(segs.total());
    adasum::adasum_tree(space, means, expected, segs);

    const adasum::schedules::hierarchical order{nodes, adasum::rules::mean{}};
    auto plan = adasum::plan_allreduce<double>(space, comm, segs, adasum::rules::adasum{}, order);
    auto by_message = gradients[rank];
    plan(by_message);
    const auto in_place = plan.buffer();
    std::ranges::copy(gradients[rank], in_place.begin());
    plan();
    for (std::size_t x = 0; x < segs.total(); ++x) {
      CHECK(by_message[x] == doctest::Approx(expected[x]).epsilon(1e-12));
      CHECK(in_place[x] == doctest::Approx(expected[x]).epsilon(1e-12));
    }
  }
}

}  // namespace test_of_communicators_mpi_coexistence
