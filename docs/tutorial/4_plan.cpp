// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plan is set up once. Running it allocates nothing, and the program can do other work meanwhile.
#include <adasum/mpi.hpp>

#include <cstdio>

#include "model.hpp"

void train() {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, {common, rare});

  std::mt19937 random(comm.rank() + 1);
  std::vector<float> weights(features), gradient(features);
  for (int step = 0; step <= 400; ++step) {
    const float loss = gradient_of(weights, random, gradient);

    plan.start(gradient);
    if (comm.rank() == 0 && step % 100 == 0) std::printf("step %3d  loss %.4f\n", step, loss);  // other work
    plan.wait();

    for (int i = 0; i < features; ++i) weights[i] -= 0.3f * gradient[i];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  train();
  MPI_Finalize();
}
