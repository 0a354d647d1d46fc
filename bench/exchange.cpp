// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n 2 adasum_bench_exchange [rounds]
//
// What one exchange of short gradients costs above the MPI calls that it cannot do without. Two ranks; recursive_doubling,
// without agreement checks, is one exchange of the gradients and one adasum_pair. Beside it: MPI_Sendrecv of as many bytes,
// the same followed by adasum_pair, and MPI_Allreduce(SUM). Alternating, rounds of 20 calls each; medians, in microseconds.

#include <mpi.h>

#include <adasum/mpi.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <vector>

#include "noise.hpp"

namespace {

constexpr int calls = 20;
constexpr std::size_t ways = 4;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Microseconds of each way.
std::array<double, ways> measure(const adasum::mpi_communicator& comm, std::size_t length, int rounds) {
  const adasum::serial_space space;
  const adasum::options unchecked{.check_agreement = false};
  auto plan = adasum::plan_allreduce<float>(space, comm, adasum::segments::whole(length),
                                            adasum::schedules::recursive_doubling{}, unchecked);
  std::vector<float> start(length), mine(length), theirs(length);
  fill_with_noise(std::span(start), static_cast<std::uint32_t>(comm.rank()));
  const auto count = static_cast<int>(length);
  const int other = 1 - comm.rank();
  const auto sendrecv = [&] {
    MPI_Sendrecv(mine.data(), count, MPI_FLOAT, other, 0, theirs.data(), count, MPI_FLOAT, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  };
  const std::array<std::function<void()>, ways> all{
      [&] { MPI_Allreduce(MPI_IN_PLACE, mine.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
      sendrecv,
      [&] {
        sendrecv();
        adasum::adasum_pair(space, mine, theirs, mine);
      },
      [&] { plan(mine); },
  };
  std::array<std::vector<double>, ways> seconds;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t way = 0; way < ways; ++way) {
      mine = start;
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (int i = 0; i < calls; ++i) all[way]();
      seconds[way].push_back((MPI_Wtime() - begin) / calls);
    }
  std::array<double, ways> medians{};
  for (std::size_t way = 0; way < ways; ++way) medians[way] = 1e6 * median(seconds[way]);
  return medians;
}

int run(int rounds) {
  const adasum::mpi_communicator comm(MPI_COMM_WORLD);
  if (comm.size() != 2 || rounds < 1) {
    if (comm.rank() == 0) std::fprintf(stderr, "usage: mpirun -n 2 adasum_bench_exchange [rounds]\n");
    return 2;
  }
  if (comm.rank() == 0)
    std::printf(
        "| floats | `MPI_Allreduce`, µs | `MPI_Sendrecv`, µs | and `adasum_pair`, µs | plan, µs | more, µs |\n"
        "|---|---|---|---|---|---|\n");
  for (const std::size_t length : {64, 256, 512, 1000, 1024, 2048, 4096, 16384}) {
    const auto [sum, sendrecv, pair, plan] = measure(comm, length, rounds);
    if (comm.rank() == 0)
      std::printf("| %zu | %.2f | %.2f | %.2f | %.2f | %.2f |\n", length, sum, sendrecv, pair, plan, plan - pair);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc > 1 ? std::atoi(argv[1]) : 301);
  MPI_Finalize();
  return status;
}
