// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "expected.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool correct = false;
  {
    const adasum::mpi_communicator comm{MPI_COMM_WORLD};
    std::vector<float> gradient{4, 5, 6, 7};
    if (comm.rank() == 1) gradient = {8, 9, 10, 11};
    adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient);
    correct = comm.size() == 2 && is_expected(gradient);
  }
  MPI_Finalize();
  return correct ? 0 : 1;
}
