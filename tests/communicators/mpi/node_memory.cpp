// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <adasum/communicators/mpi.hpp>
#include <adasum/communicators/shared_file.hpp>

#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_node_memory {

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
  if (world_size() < 2 || !std::filesystem::exists("/dev/shm")) return;  // elsewhere files may be as long as they like
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
    CHECK(message.find(" KiB in /dev/shm: ") != std::string::npos);
  }
  const auto memory = comm.share(64);
  CHECK(std::ranges::all_of(std::span(memory.of(0), 64), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("a rank drops it when it likes: the others still have all of it, and no file is left behind") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto mine = static_cast<std::size_t>(world_rank());
  for (int first = 0; first < world_size(); ++first) {
    std::optional memory(comm.share(5000));
    std::ranges::fill(std::span(memory->of(mine), 5000), static_cast<std::byte>(mine + 1));
    if (world_rank() == first) memory.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!memory) continue;
    for (std::size_t rank = 0; rank < memory->ranks().size(); ++rank)
      CHECK(std::ranges::count(std::span(memory->of(rank), 5000), static_cast<std::byte>(rank + 1)) == 5000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto mine_are = "adasum." + std::to_string(getpid()) + ".";
  for (const auto& file : std::filesystem::directory_iterator(adasum::detail::shared_file::directory()))
    CHECK_FALSE(file.path().filename().string().starts_with(mine_are));
}

TEST_CASE("at every size close to what is free: memory on all ranks or an error on all ranks, and nobody hangs") {
  // Run where /dev/shm is small, too (with_small_directory.sh).
  const auto free_bytes = [] {
    std::uint64_t bytes = std::filesystem::space(adasum::detail::shared_file::directory()).available;
    MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return bytes;
  };
  if (world_size() < 2) return;
  if (const auto there = free_bytes(); there > (std::uint64_t{1} << 30)) {
    MESSAGE("skipped: there are ", there >> 20, " MiB free, too much to be filled");
    return;
  }
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  int made = 0, refused = 0;
  for (int percent = 80; percent <= 104; ++percent) {
    CAPTURE(percent);
    const auto bytes = static_cast<std::size_t>(free_bytes()) * static_cast<std::size_t>(percent) / 100 /
                       static_cast<std::size_t>(world_size());
    bool shared = true;
    try {
      const auto memory = comm.share(bytes);
      std::ranges::fill(std::span(memory.of(static_cast<std::size_t>(world_rank())), bytes), std::byte{1});
    } catch (const adasum::shared_memory_error&) {
      shared = false;
    }
    ++(shared ? made : refused);
    CHECK(same_on_all_ranks(std::string(1, shared ? 'y' : 'n')));
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 looks at what is free when all have dropped theirs
  }
  CHECK(made >= 18);    // nearly all of it can be shared
  CHECK(refused >= 4);  // what is not there
}

}  // namespace test_of_communicators_mpi_node_memory
