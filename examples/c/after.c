/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Least squares by stochastic gradient descent, data-parallel: each rank has rows of its own, and gradients are combined. */
#include <adasum/adasum.h>
#include <stdio.h>
#include <stdlib.h>

enum { features = 24, rows = 60, batch = 6, epochs = 40 };
static const float rate = 0.2f;

static float uniform(void) { return 2.0f * (float)rand() / (float)RAND_MAX - 1.0f; }

int main(int argc, char** argv) {
  static float x[rows][features], y[rows], w[features], gradient[features], truth[features];
  int rank, size, epoch, row, i;
  float first = 0, last = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  for (i = 0; i < features; ++i) truth[i] = (float)(i % 5) - 2;
  srand(1 + (unsigned)rank);
  for (row = 0; row < rows; ++row) {
    for (y[row] = 0, i = 0; i < features; ++i) y[row] += truth[i] * (x[row][i] = uniform());
  }

  for (epoch = 0; epoch < epochs; ++epoch) {
    float loss = 0;
    for (row = 0; row < rows; ++row) {
      float error = -y[row];
      if (row % batch == 0)
        for (i = 0; i < features; ++i) gradient[i] = 0;
      for (i = 0; i < features; ++i) error += w[i] * x[row][i];
      for (i = 0; i < features; ++i) gradient[i] += error * x[row][i] / batch;
      loss += error * error / (rows * size);
      if (row % batch < batch - 1) continue;

      adasum_allreduce(MPI_COMM_WORLD, gradient, features, ADASUM_FLOAT, NULL, 0, "adasum", NULL, NULL);
      for (i = 0; i < features; ++i) w[i] -= rate * gradient[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (epoch == 0) first = loss;
    last = loss;
  }

  if (rank == 0) printf("mean squared error: %.4g in the first epoch, %.4g in the last\n", first, last);
  MPI_Finalize();
  return last < 0.01f * first ? EXIT_SUCCESS : EXIT_FAILURE;
}
