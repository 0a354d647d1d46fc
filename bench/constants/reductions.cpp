// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans among the ranks of one node, in the memory that they share and by messages: see constants.py. The time is rank
// 0's, of many calls, in which no rank can be far ahead of another.

#include <mpi.h>

#include <adasum/mpi.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "timing.hpp"

int main(int argc, char** argv) {
  using namespace constants_bench;
  MPI_Init(&argc, &argv);
  {
    const adasum::serial_space exec;
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    const adasum::options unchecked{.check_agreement = false};
    const auto time = [&](const char* what, std::size_t length, const auto& schedule) {
      auto gradient = noise(length, 1 + static_cast<std::uint32_t>(comm.rank()));
      auto plan = adasum::plan_allreduce<float>(exec, comm, adasum::segments::whole(length), schedule, unchecked);
      const std::size_t calls = 100 + 200'000 / (length + 200);
      std::array<double, 3> batches{};
      for (auto& one : batches) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (std::size_t i = 0; i < calls; ++i) plan(gradient);
        one = (MPI_Wtime() - begin) * 1e9 / static_cast<double>(calls);
      }
      std::ranges::sort(batches);
      if (comm.rank() == 0) print(what, length, batches[batches.size() / 2]);
    };
    for (const std::size_t length :
         {64u, 256u, 512u, 1u << 10, 3u << 9, 2u << 10, 3u << 10, 4u << 10, 8u << 10, 32u << 10}) {
      time("shared", length, adasum::schedules::automatic{});
      time("messages", length, adasum::schedules::automatic{.in_place = false});
    }
  }
  MPI_Finalize();
}
