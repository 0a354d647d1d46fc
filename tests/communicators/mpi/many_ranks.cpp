// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/bits.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"

namespace test_of_communicators_mpi_many_ranks {

/// More processes than one stage takes, in memory that they share.

using namespace adasum::test;

namespace {

const adasum::segments segs{7, 0, 1001, 1, 3000};
constexpr adasum::options unchecked{.check_agreement = false};

std::vector<float> gradient_of(int rank, std::uint64_t run) {
  return random_gradients<float>(static_cast<std::size_t>(world_size()), segs.total(),
                                 run)[static_cast<std::size_t>(rank)];
}

}  // namespace

TEST_CASE("many processes by levels: the bits of messages by the same levels, copied and in the plan's buffer") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for (const std::size_t radix : {2u, 8u}) {
    CAPTURE(radix);
    auto in_place = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs,
                                                  adasum::schedules::shared_memory{radix}, unchecked);
    auto sent = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs,
                                              adasum::schedules::recursive_halving{radix}, unchecked);
    for (std::uint64_t run = 0; run < 20; ++run) {
      auto mine = gradient_of(comm.rank(), run), theirs = mine;
      const auto& found = in_place(mine);
      const auto& report = sent(theirs);
      CHECK(same_bits(mine, theirs));
      CHECK(found.bytes_sent() == 0);
      CHECK(same_on_all_ranks(mine));
      for (std::size_t i = 0; i < static_cast<std::size_t>(world_size()); ++i)
        CHECK(found.weight(i, 4) == report.weight(i, 4));
    }
    const auto buffer = in_place.buffer();
    const auto mine = gradient_of(comm.rank(), 3);
    std::ranges::copy(mine, buffer.begin());
    in_place();
    auto theirs = mine;
    sent(theirs);
    CHECK(same_bits(std::vector<float>(buffer.begin(), buffer.end()), theirs));
  }
}

TEST_CASE("many processes: the default, and a rule of the whole Gram matrix") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto size = static_cast<std::size_t>(world_size());
  const auto gradients = random_gradients<float>(size, segs.total(), 7);
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs);
  auto mine = gradients[static_cast<std::size_t>(comm.rank())];
  const auto& found = plan(mine);
  CHECK(same_on_all_ranks(mine));
  if (size > 16) CHECK(found.schedule() == "shared_memory");
  const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
  CHECK(worst_error_over_bound(mine, expected.exact.values, expected.bounds, segs) <= 1);

  std::vector<float> combined(segs.total());
  adasum::combine(adasum::serial_space{}, gradients, combined, adasum::rules::geometric_median{}, segs);
  auto of_all = gradients[static_cast<std::size_t>(comm.rank())];
  adasum::combine_allreduce(adasum::serial_space{}, comm, of_all, adasum::rules::geometric_median{}, segs,
                            adasum::schedules::shared_memory{});
  CHECK(same_on_all_ranks(of_all));
  for (std::size_t x = 0; x < combined.size(); ++x)
    CHECK(of_all[x] == doctest::Approx(combined[x]).epsilon(1e-4).scale(1));
}

TEST_CASE("many processes that pose as two unequal nodes: level by level in memory that they share, messages across") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto first = world_size() * 3 / 5;
  std::vector<int> nodes;
  for (int rank = 0; rank < world_size(); ++rank) nodes.push_back(rank < first ? 0 : 1);
  for (const std::size_t radix : {2u, 8u}) {
    CAPTURE(radix);
    const adasum::schedules::hierarchical order{nodes, adasum::rules::adasum{}, adasum::schedules::recursive_halving{},
                                                radix};
    auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, order, unchecked);
    const auto buffer = plan.buffer();
    for (std::uint64_t run = 0; run < 20; ++run) {
      const auto mine = gradient_of(comm.rank(), run);
      std::ranges::copy(mine, buffer.begin());
      plan();
      auto sent = mine;
      plan(sent);
      CHECK(same_bits(std::vector<float>(buffer.begin(), buffer.end()), sent));
      CHECK(same_on_all_ranks(sent));
    }
  }
}

TEST_CASE("many processes: one that is refused keeps nobody waiting, and the plan works again") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto plan =
      adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::schedules::shared_memory{}, unchecked);
  for (const int culprit : {0, world_size() - 2}) {
    std::vector<float> wrong(comm.rank() == culprit ? 3 : segs.total(), 1.0f);
    CHECK_THROWS_AS(plan(wrong), adasum::error);
    auto mine = gradient_of(comm.rank(), 5);
    CHECK_NOTHROW(plan(mine));
    CHECK(same_on_all_ranks(mine));
  }
}

}  // namespace test_of_communicators_mpi_many_ranks
