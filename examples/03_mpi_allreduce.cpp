// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adaptive sum of one gradient per MPI rank, in place:  mpirun -n 4 03_mpi_allreduce
#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include <cmath>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const adasum::serial_space exec;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto rank = static_cast<std::size_t>(comm.rank()), ranks = static_cast<std::size_t>(comm.size());

  // One layer in which each rank moves along its own axis, and one in which all agree.
  const adasum::segments layers{ranks, 1000};
  std::vector<float> gradient(layers.total(), 0.0f);
  gradient[rank] = static_cast<float>(rank + 1);
  for (std::size_t i = ranks; i < gradient.size(); ++i) gradient[i] = 2;

  const adasum::report found = adasum::adasum_allreduce(exec, comm, gradient, layers);

  bool as_expected = true;  // the sum in the first layer, the mean in the second
  for (std::size_t i = 0; i < gradient.size(); ++i)
    as_expected &= std::abs(gradient[i] - (i < ranks ? static_cast<float>(i + 1) : 2.0f)) < 1e-5f;
  if (rank == 0)
    std::cout << ranks << " ranks, schedule " << found.schedule() << ", orthogonality " << found.orthogonality(0)
              << " and " << found.orthogonality(1) << '\n';
  MPI_Finalize();
  return as_expected ? 0 : 1;
}
