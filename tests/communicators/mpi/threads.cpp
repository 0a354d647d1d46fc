// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Process groups: every rank is in a row and in a column of a grid, and reduces over both at once, from two threads.
#include <mpi.h>

#include <adasum/mpi.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "support/random_gradients.hpp"

namespace {

const adasum::segments segs{300, 1, 5000};
constexpr int rounds = 20;

/// Reduces over the communicator again and again. Returns what went wrong, nothing if all was well.
std::string reduce_over(const adasum::mpi_communicator& comm, std::uint64_t seed) {
  const auto gradients =
      adasum::test::random_gradients<float>(static_cast<std::size_t>(comm.size()), segs.total(), seed);
  std::vector<float> expected(segs.total());
  const adasum::serial_space exec;
  adasum::adasum_tree(exec, gradients, expected, segs);
  const auto mine = gradients[static_cast<std::size_t>(comm.rank())];
  auto plan = adasum::plan_allreduce<float>(exec, comm, segs);
  for (int round = 0; round < rounds; ++round) {
    auto gradient = mine;
    if (round % 2 == 0)
      plan(gradient);
    else
      adasum::adasum_allreduce(exec, comm, gradient, segs, adasum::schedules::recursive_doubling{});
    for (std::size_t x = 0; x < segs.total(); ++x)
      if (!(std::abs(gradient[x] - expected[x]) <= 1e-5f))
        return "round " + std::to_string(round) + ", element " + std::to_string(x) + " is " +
               std::to_string(gradient[x]) + ", not " + std::to_string(expected[x]);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    std::puts("this MPI does not offer MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return ADASUM_SKIPPED;
  }
  std::string row_problem, column_problem;
  {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm rows = MPI_COMM_NULL, columns = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &rows);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &columns);
    {
      const adasum::mpi_communicator row{rows}, column{columns};
      std::jthread other([&] { column_problem = reduce_over(column, 2 + static_cast<std::uint64_t>(rank % 2)); });
      row_problem = reduce_over(row, 10 + static_cast<std::uint64_t>(rank / 2));
    }
    MPI_Comm_free(&rows);
    MPI_Comm_free(&columns);
  }
  for (const auto& problem : {row_problem, column_problem})
    if (!problem.empty()) std::fprintf(stderr, "%s\n", problem.c_str());
  MPI_Finalize();
  return row_problem.empty() && column_problem.empty() ? 0 : 1;
}
