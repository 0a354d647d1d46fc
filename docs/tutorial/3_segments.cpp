// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two segments: the common and the rare features are weighted separately. The report says how each segment was combined.
#include <adasum/mpi.hpp>

#include <cstdio>

#include "model.hpp"

void train() {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments layers{common, rare};

  std::mt19937 random(comm.rank() + 1);
  std::vector<float> weights(features), gradient(features);
  for (int step = 0; step <= 400; ++step) {
    const float loss = gradient_of(weights, random, gradient);

    const adasum::report found = adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, layers);
    if (comm.rank() == 0 && step % 100 == 0)
      std::printf("step %3d  loss %.4f  orthogonality %.2f of common features, %.2f of rare ones\n", step, loss,
                  found.orthogonality(0), found.orthogonality(1));

    for (int i = 0; i < features; ++i) weights[i] -= 0.3f * gradient[i];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  train();
  MPI_Finalize();
}
