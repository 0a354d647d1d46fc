// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/disagreements.hpp"
#include "support/mpi_world.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_reduce_scatter {

using namespace adasum::test;

namespace {

const adasum::serial_space exec;

/// Parts, by plans in the caller's memory and in their own, against an allreduce. After each run the gradient is overwritten at
/// once.
template <class Rule, class Schedule>
void check(const adasum::mpi_communicator& comm, std::size_t length, const Rule& rule, const Schedule& order) {
  const auto self = static_cast<std::size_t>(comm.rank());
  const adasum::segments segs{length / 3, std::size_t{0}, length - length / 3};
  const auto gradient = random_gradients<float>(static_cast<std::size_t>(comm.size()), length, length + 1)[self];
  auto expected = gradient;
  auto all = adasum::plan_allreduce<float>(exec, comm, segs, rule, order);
  const adasum::report told = all(expected);
  const auto of_all = all.buffer();
  std::ranges::copy(gradient, of_all.begin());
  all();
  const std::vector<float> expected_in_buffer(of_all.begin(), of_all.end());

  for (const auto& given : some_parts(length, comm.size())) {
    auto plan = adasum::plan_reduce_scatter<float>(exec, comm, segs, given, rule, order);
    const auto part = plan.part();
    CHECK(part == given.of_rank(self));
    auto mine = gradient;
    CHECK(same_report(plan(mine), told));
    CHECK(same_elements(mine, expected, part));
    mine = gradient;
    plan.start(mine);
    while (!plan.test()) std::this_thread::yield();
    plan.wait();
    CHECK(same_elements(mine, expected, part));
    const auto buffer = plan.buffer();
    for (int turn = 0; turn < 2; ++turn) {
      std::ranges::copy(gradient, buffer.begin());
      plan();
      mine.assign(buffer.begin(), buffer.end());
      std::ranges::fill(buffer, std::numeric_limits<float>::quiet_NaN());
      CHECK(same_elements(mine, expected_in_buffer, part));
    }
  }
}

}  // namespace

TEST_CASE("the bits of an allreduce, by every schedule") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for (const std::size_t length : {0u, 6u, 5003u})
    for_each_schedule([&](const auto& order, const std::string& name) {
      CAPTURE(name);
      CAPTURE(length);
      check(comm, length, adasum::rules::adasum{}, order);
    });
  check(comm, 5003, adasum::rules::adasum{}, adasum::schedules::automatic{});
  check(comm, 5003, adasum::rules::adacons{}, adasum::schedules::all_to_all{});
  check(comm, 5003, adasum::rules::geometric_median{}, adasum::schedules::automatic{});
}

TEST_CASE("single calls") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto gradient =
      random_gradients<float>(static_cast<std::size_t>(comm.size()), 900, 3)[static_cast<std::size_t>(comm.rank())];
  for (int turn = 0; turn < 3; ++turn) {
    auto expected = gradient, mine = gradient;
    adasum::adasum_allreduce(exec, comm, expected);
    adasum::adasum_reduce_scatter(exec, comm, mine);
    CHECK(same_elements(mine, expected, adasum::part_of_rank(900, comm.size(), comm.rank())));
  }
}

TEST_CASE("parts that one rank has wrong, or other than the others, are an error on all of them") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  if (comm.size() == 1) return;
  const bool last = comm.rank() + 1 == comm.size();
  std::vector<int> lengths(static_cast<std::size_t>(comm.size()), 3);
  if (last) ++lengths.back();
  const auto length = static_cast<std::size_t>(comm.size()) * 3;
  const auto wrong_parts = end_of(
      counted(length), [&](auto& g) { adasum::adasum_reduce_scatter(exec, comm, g, adasum::parts(lengths), checked); });
  CHECK(wrong_parts.message.find("the parts hold") != std::string::npos);
  CHECK(wrong_parts.unchanged);
  if (last) {
    lengths.back() -= 2;
    ++lengths.front();
  }
  const auto other_parts = end_of(
      counted(length), [&](auto& g) { adasum::adasum_reduce_scatter(exec, comm, g, adasum::parts(lengths), checked); });
  CHECK(other_parts.message.find("on the parts") != std::string::npos);
  CHECK(other_parts.unchanged);
}

}  // namespace test_of_communicators_mpi_reduce_scatter
