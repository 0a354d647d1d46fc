// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <vector>

#include <adasum/mpi.hpp>

/// What unloaded.cpp loads: reduces on a communicator of the program, which keeps a plan of this call, and on one of its own.
extern "C" bool reduce_in_plugin(const adasum::mpi_communicator* programs) {
  std::vector<float> gradient(1000, 1.0f);
  adasum::adasum_allreduce(adasum::serial_space{}, *programs, gradient);
  const adasum::mpi_communicator own(MPI_COMM_WORLD);
  adasum::adasum_allreduce(adasum::serial_space{}, own, gradient);
  return std::ranges::all_of(gradient, [](float one) { return one == 1; });
}
