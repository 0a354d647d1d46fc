// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/allocations.hpp"
#include "support/bits.hpp"
#include "support/disagreements.hpp"
#include "support/mpi_world.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_allocation_failures {

/// Memory that is short on one rank of an MPI program: whichever allocation fails there, no rank waits for ever, ranks that
/// return have the result, and the communicator works afterwards.

using namespace adasum::test;

namespace {

const adasum::serial_space space;
const adasum::segments segs{9, 0, 24};

/// What call(comm, gradient) does on a new communicator, with the n'th allocation of one rank failing, and those after it
/// up to `in_a_row`, for each n in turn (of more than two ranks, which wait long for each other if there are fewer cores, for
/// every third n); then a reduction on the same communicator, which must be right. Where the call
/// returns, on whichever rank, it must have given what it gives where nothing fails.
template <class Call>
void check_every_allocation(const std::string& name, std::size_t in_a_row, const Call& call) {
  if (world_size() < 2) return;
  CAPTURE(name);
  CAPTURE(in_a_row);
  const auto gradient_of = [](const auto& comm) { return std::vector<double>(segs.total(), 1 + comm.rank()); };
  const auto expected = [&] {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    auto gradient = gradient_of(comm);
    call(comm, gradient);
    return gradient;
  }();
  const std::size_t stride = world_size() > 2 ? 3 : 1;
  for (const int culprit : {0, world_size() - 1}) {
    int ran_out = 1;
    for (std::size_t n = 0; ran_out; n += stride) {
      CAPTURE(culprit);
      CAPTURE(n);
      const adasum::mpi_communicator comm{MPI_COMM_WORLD};
      const bool bad = comm.rank() == culprit;
      auto gradient = gradient_of(comm);
      const auto end = end_of(std::vector<double>{}, [&](auto&) {
        std::optional<failing_allocations> failures;
        if (bad) failures.emplace(n, in_a_row);
        try {
          call(comm, gradient);
        } catch (...) {
          ran_out = failures && failures->any();
          throw;
        }
        ran_out = failures && failures->any();
      });
      MPI_Bcast(&ran_out, 1, MPI_INT, culprit, MPI_COMM_WORLD);
      const bool none_shared = end.message.find("memory cannot be shared") != std::string::npos;
      if (!bad)
        CHECK_MESSAGE((end.how == way::returned || end.how == way::communication_error ||
                       end.how == way::agreement_error || none_shared),
                      end.message);
      if (end.how == way::returned) CHECK(same_bits(gradient, expected));
      std::ranges::fill(gradient, 3);
      CHECK_NOTHROW(
          adasum::adasum_allreduce(space, comm, gradient, adasum::schedules::recursive_doubling{}, unchecked));
      CHECK(gradient == std::vector<double>(segs.total(), 3));  // equal: their mean
    }
  }
}

}  // namespace

TEST_CASE("in a single call by messages, on a communicator that has sent none") {
  for (const bool check : {false, true})
    check_every_allocation(check ? "checked" : "unchecked", 1, [&](const auto& comm, auto& gradient) {
      adasum::adasum_allreduce(space, comm, gradient, segs, adasum::schedules::recursive_doubling{},
                               check ? checked : unchecked);
    });
}

TEST_CASE("while a plan is made, and the other ranks are told, on a communicator that has sent nothing") {
  for (const std::size_t in_a_row : {1u, 2u, 3u})
    check_every_allocation("a plan", in_a_row, [&](const auto& comm, auto&) {
      adasum::plan_allreduce<double>(space, comm, segs, adasum::schedules::recursive_doubling{}, unchecked);
    });
}

TEST_CASE("while memory is shared: all ranks get it, or none does") {
  for (const std::size_t in_a_row : {std::size_t{1}, std::size_t{2}, failing_allocations::all})
    check_every_allocation("share()", in_a_row, [&](const auto& comm, auto&) {
      int shared = 1;
      try {
        comm.share(1000);
      } catch (...) {
        shared = 0;
      }
      without_failures([&] {
        int least = 0, most = 0;
        MPI_Allreduce(&shared, &least, 1, MPI_INT, MPI_MIN, comm.native());
        MPI_Allreduce(&shared, &most, 1, MPI_INT, MPI_MAX, comm.native());
        CHECK(least == most);
        return 0;
      });
    });
}

namespace {

/// In memory that the ranks share, with and without checks, where one allocation fails, or all from it on; only one where
/// there are more than two ranks. visit(name, options, in_a_row)
template <class Visitor>
void for_each_choice(const Visitor& visit) {
  for (const std::size_t in_a_row : {std::size_t{1}, failing_allocations::all}) {
    if (in_a_row > 1 && world_size() > 2) break;
    visit(", checked", checked, in_a_row);
    visit(", unchecked", unchecked, in_a_row);
  }
}

}  // namespace

TEST_CASE("while a plan is made whose gradients lie in shared memory") {
  for_each_choice([](const std::string& how, const auto& choices, std::size_t in_a_row) {
    check_every_allocation("a plan in shared memory" + how, in_a_row, [&](const auto& comm, auto& gradient) {
      auto plan = adasum::plan_allreduce<double>(space, comm, segs, adasum::schedules::shared_memory{}, choices);
      without_failures([&] { return plan(gradient); });
    });
  });
}

TEST_CASE("while a plan's buffer is made") {
  for_each_choice([](const std::string& how, const auto& choices, std::size_t in_a_row) {
    for_each_schedule([&](const auto& order, const std::string& name) {
      check_every_allocation("a buffer, " + name + how, in_a_row, [&](const auto& comm, auto& gradient) {
        auto plan = without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
        std::ranges::copy(gradient, plan.buffer().begin());
        without_failures([&] { return plan(); });
        std::ranges::copy(plan.buffer(), gradient.begin());
      });
    });
  });
}

TEST_CASE("while buckets are made") {
  const std::vector<std::size_t> parameters{20, 13, 2};
  for_each_choice([&](const std::string& how, const auto& choices, std::size_t in_a_row) {
    check_every_allocation("buckets" + how, in_a_row, [&](const auto& comm, auto&) {
      adasum::plan_bucketed<double>(space, comm, parameters, 150, choices);
    });
  });
}

TEST_CASE("in the first run of a plan") {
  for_each_choice([](const std::string& how, const auto& choices, std::size_t in_a_row) {
    for_each_schedule([&](const auto& order, const std::string& name) {
      check_every_allocation("the run of a plan, " + name + how, in_a_row, [&](const auto& comm, auto& gradient) {
        auto plan = without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
        plan(gradient);
      });
      check_every_allocation("start and wait, " + name + how, in_a_row, [&](const auto& comm, auto& gradient) {
        auto plan = without_failures([&] { return adasum::plan_allreduce<double>(space, comm, segs, order, choices); });
        plan.start(gradient);
        while (!plan.test()) std::this_thread::yield();
        plan.wait();
      });
    });
  });
}

}  // namespace test_of_communicators_mpi_allocation_failures
