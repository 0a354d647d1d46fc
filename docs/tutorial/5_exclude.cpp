// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One rank's gradient overflows, and the others continue without it. A mistake throws an exception on all ranks.
#include <adasum/mpi.hpp>

#include <cstdio>
#include <limits>

#include "model.hpp"

void train() {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, {common, rare},
                                            {.nonfinite = adasum::nonfinite_policy::exclude});

  std::mt19937 random(comm.rank() + 1);
  std::vector<float> weights(features), gradient(features);
  gradient_of(weights, random, gradient);
  if (comm.rank() == 2) gradient[7] = std::numeric_limits<float>::infinity();

  const adasum::report& found = plan(gradient);
  if (comm.rank() == 0)
    for (int rank : found.excluded()) std::printf("rank %d was left out\n", rank);

  try {
    std::vector<float> too_short(features - 1);
    plan(comm.rank() == 1 ? too_short : gradient);
  } catch (const adasum::error& problem) {
    if (comm.rank() == 1) std::printf("%s\n", problem.what());
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  train();
  MPI_Finalize();
}
