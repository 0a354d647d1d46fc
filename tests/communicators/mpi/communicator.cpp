// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <adasum/communicators/mpi.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/testing/communicator.hpp>

#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_communicator {

/// What can be asked of a communicator, and of one that is empty.

using namespace adasum::test;

static_assert(adasum::communicator_for<adasum::mpi_communicator, adasum::serial_space>);
static_assert(adasum::posting_communicator<adasum::mpi_communicator, adasum::serial_space>);
static_assert(adasum::shared_memory_communicator<adasum::mpi_communicator>);

namespace {

const adasum::serial_space space;

/// Every use of an empty communicator says that it is empty.
void check_empty(const adasum::mpi_communicator& comm) {
  CHECK_FALSE(comm);
  CHECK(comm.native() == MPI_COMM_NULL);
  const auto is_empty = doctest::Contains("adasum::mpi_communicator: this communicator is empty (MPI_COMM_NULL)");
  CHECK_THROWS_WITH_AS(comm.rank(), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.size(), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.share(64), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(static_cast<void>(comm.state()), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.nodes(), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.exchange(space, {}, {}), is_empty, adasum::bad_input);
  adasum::mpi_communicator::pending nothing;
  CHECK_THROWS_WITH_AS(comm.post(space, {}, {}, nothing), is_empty, adasum::bad_input);
}

}  // namespace

TEST_CASE("messages, posted exchanges and shared memory are what the concepts ask for") {
  const adasum::mpi_communicator comm(MPI_COMM_WORLD);
  CHECK_NOTHROW(adasum::check_communicator(comm, space));
  const adasum::mpi_communicator in_pieces(MPI_COMM_WORLD, 1000);
  CHECK_NOTHROW(adasum::check_communicator(in_pieces, space));
}

TEST_CASE("copies share one duplicate") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto copy = comm;
  CHECK(copy);
  CHECK(copy.native() == comm.native());
  CHECK(comm.native() != MPI_COMM_WORLD);
  CHECK(copy.rank() == world_rank());
  CHECK(copy.size() == world_size());
}

TEST_CASE("an empty communicator can be made, copied and moved, but not used") {
  check_empty(adasum::mpi_communicator{});
  const adasum::mpi_communicator none{MPI_COMM_NULL};
  check_empty(none);
  auto copy = none;
  check_empty(copy);
  copy = adasum::mpi_communicator{MPI_COMM_WORLD};
  CHECK(copy.size() == world_size());
  const auto moved = std::move(copy);
  CHECK(moved.size() == world_size());
  check_empty(copy);  // NOLINT(bugprone-use-after-move): what is left is empty
}

TEST_CASE("ranks that MPI_Comm_split left out hold an empty communicator, and the others work") {
  const bool takes_part = world_rank() % 2 == 0;
  MPI_Comm evens = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, world_rank(), &evens);
  const adasum::mpi_communicator comm{evens};
  if (takes_part) {
    CHECK(comm.size() == (world_size() + 1) / 2);
    CHECK(comm.nodes().size() == static_cast<std::size_t>(comm.size()));
    MPI_Comm_free(&evens);
  } else {
    check_empty(comm);
  }
}

TEST_CASE("communicators that cannot be used") {
  CHECK_THROWS_WITH_AS((adasum::mpi_communicator{MPI_COMM_WORLD, 0}),
                       "adasum::mpi_communicator: piece_limit is 0 bytes; it must be between 1 and 1073741824",
                       adasum::bad_input);
  CHECK_THROWS_AS((adasum::mpi_communicator{MPI_COMM_WORLD, std::size_t{1} << 40}), adasum::bad_input);
  if (world_size() < 2) return;
  MPI_Comm side = MPI_COMM_NULL, between = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - world_rank() % 2, 0, &between);
  CHECK_THROWS_WITH_AS(adasum::mpi_communicator{between},
                       doctest::Contains("adasum::mpi_communicator: an inter-communicator cannot be used"),
                       adasum::bad_input);
  MPI_Comm_free(&between);
  MPI_Comm_free(&side);
}

TEST_CASE("the nodes of ranks on one machine") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  CHECK(comm.nodes() == std::vector<int>(static_cast<std::size_t>(comm.size()), 0));
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  {
    const adasum::mpi_communicator backwards{reversed};
    CHECK(backwards.rank() == world_size() - 1 - world_rank());
    const auto memory = backwards.share(8);
    for (int rank = 0; rank < backwards.size(); ++rank)
      CHECK(memory.ranks()[static_cast<std::size_t>(rank)] == rank);  // ascending, whatever the ranks of the world
  }
  MPI_Comm_free(&reversed);
}

}  // namespace test_of_communicators_mpi_communicator
