// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that averages gradients with MPI_Allreduce: the start of the tutorial.
#include <mpi.h>

#include <cstdio>

#include "model.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  std::mt19937 random(rank + 1);  // each rank draws its own examples
  std::vector<float> weights(features), gradient(features);
  for (int step = 0; step <= 400; ++step) {
    const float loss = gradient_of(weights, random, gradient);
    if (rank == 0 && step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, loss);

    MPI_Allreduce(MPI_IN_PLACE, gradient.data(), features, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (float& g : gradient) g /= static_cast<float>(ranks);

    for (int i = 0; i < features; ++i) weights[i] -= 0.3f * gradient[i];
  }
  MPI_Finalize();
}
