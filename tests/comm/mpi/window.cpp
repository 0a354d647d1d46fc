// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <adasum/comm/mpi.hpp>

#include "support/mpi_world.hpp"

/// Memory that the ranks of a node share.

using namespace adasum::test;

static_assert(adasum::shared_window<adasum::mpi_communicator::memory>);

TEST_CASE("what one rank writes the others read; all of it is zero at first, and aligned") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  for (const std::size_t bytes : {0u, 8u, 64u, 1000u, 100'000u}) {
    CAPTURE(bytes);
    const auto memory = comm.share(bytes);
    CHECK(std::ranges::equal(memory.ranks(), [&] {
      std::vector<int> all;
      for (int rank = 0; rank < comm.size(); ++rank) all.push_back(rank);
      return all;
    }()));
    CHECK(memory.alive());
    for (std::size_t rank = 0; rank < memory.ranks().size(); ++rank) {
      CHECK(reinterpret_cast<std::uintptr_t>(memory.of(rank)) % 64 == 0);
      CHECK(std::ranges::count(std::span(memory.of(rank), bytes), std::byte{0}) == static_cast<std::ptrdiff_t>(bytes));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::ranges::fill(std::span(memory.of(static_cast<std::size_t>(comm.rank())), bytes),
                      static_cast<std::byte>(comm.rank() + 1));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t rank = 0; rank < memory.ranks().size(); ++rank)
      CHECK(std::ranges::count(std::span(memory.of(rank), bytes), static_cast<std::byte>(rank + 1)) ==
            static_cast<std::ptrdiff_t>(bytes));
    memory.progress();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("more shared memory than there is: an error on every rank, and the communicator works on") {
  if (world_size() < 2 || !std::filesystem::exists("/dev/shm")) return;  // then nobody knows how much there is
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  constexpr auto everything = std::numeric_limits<std::size_t>::max();
  constexpr auto much = std::size_t{1} << 50;
  // Also where one rank alone asks for too much.
  for (const auto bytes : {much, everything, world_rank() == 0 ? much : std::size_t{64}}) {
    std::string message;
    try {
      comm.share(bytes);
    } catch (const adasum::shared_memory_error& problem) {
      message = problem.what();
    }
    CAPTURE(message);
    CHECK(message.find("the " + std::to_string(world_size()) + " ranks of this node need ") != std::string::npos);
    CHECK(message.find("/dev/shm has room for ") != std::string::npos);
  }
  const auto memory = comm.share(64);
  CHECK(std::ranges::all_of(std::span(memory.of(0), 64), [](std::byte b) { return b == std::byte{0}; }));
}
