// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <adasum/comm/mpi.hpp>
#include <adasum/comm/mpi/shared_memory_limit.hpp>

#include "support/mpi_world.hpp"

/// Memory is shared until there is none left. MPI libraries need more free space than what is asked for, and where that
/// is missing one rank gets an error while the others wait for it. Run where the directory is small
/// (with_small_directory.sh).

using namespace adasum::test;

TEST_CASE("at every size close to what is free: memory on all ranks or an error on all ranks, and nobody hangs") {
  const adasum::detail::mpi::shared_memory_limit limit;
  if (world_size() < 2) return;
  if (limit.free_bytes > (std::uint64_t{1} << 30)) {
    MESSAGE("skipped: ", limit.directory, " has ", limit.free_bytes >> 20, " MiB free, too much to be filled");
    return;
  }
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  int made = 0, refused = 0;
  for (int percent = 80; percent <= 104; ++percent) {
    CAPTURE(percent);
    std::uint64_t free_bytes = adasum::detail::mpi::shared_memory_limit().free_bytes;
    MPI_Bcast(&free_bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    bool shared = true;
    try {
      const auto memory = comm.share(static_cast<std::size_t>(free_bytes) * static_cast<std::size_t>(percent) / 100 /
                                     static_cast<std::size_t>(world_size()));
      *memory.of(memory.ranks().size() - 1) = std::byte{1};
    } catch (const adasum::shared_memory_error&) {
      shared = false;
    }
    ++(shared ? made : refused);
    CHECK(same_on_all_ranks(std::string(1, shared ? 'y' : 'n')));
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 looks at what is free when all have freed theirs
  }
  CHECK(made >= 10);    // little is kept free for MPI: 90 % can be shared
  CHECK(refused >= 4);  // what is not there
  CHECK(made + refused == 25);
}

TEST_CASE("a part of what is free is kept for MPI") {
  adasum::detail::mpi::shared_memory_limit limit;
  for (const std::uint64_t free_bytes : {std::uint64_t{0}, std::uint64_t{65536}, std::uint64_t{1} << 20,
                                         std::uint64_t{1} << 26, std::uint64_t{1} << 50}) {
    limit.free_bytes = free_bytes;
    const auto usable = limit.usable_bytes();
    CHECK(usable + usable / 20 + (usable > 0 ? 65536 : 0) <= free_bytes);
    if (free_bytes >= std::uint64_t{1} << 26) CHECK(usable >= free_bytes / 10 * 9);
  }
  limit.free_bytes = std::numeric_limits<std::uint64_t>::max();  // unknown
  CHECK(limit.usable_bytes() == limit.free_bytes);
}
