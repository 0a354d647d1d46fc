// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same program with Adasum.
#include <adasum/mpi.hpp>

#include <cstdio>

#include "model.hpp"

void train() {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};

  std::mt19937 random(comm.rank() + 1);
  std::vector<float> weights(features), gradient(features);
  for (int step = 0; step <= 400; ++step) {
    const float loss = gradient_of(weights, random, gradient);
    if (comm.rank() == 0 && step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, loss);

    adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient);

    for (int i = 0; i < features; ++i) weights[i] -= 0.3f * gradient[i];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  train();
  MPI_Finalize();
}
