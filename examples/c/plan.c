/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The least squares of after.c, with all that a longer training uses: a plan, a segment for each layer, the rule of the command
 * line, other work while gradients are combined, a report, and errors.
 *     mpirun -n 2 ./c.plan centred_clipping:radius=2 */
#include <adasum/adasum.h>
#include <stdio.h>
#include <stdlib.h>

enum { features = 24, parameters = features + 1, rows = 60, epochs = 300 };
static const double rate = 0.4;

static double uniform(void) { return 2.0 * rand() / RAND_MAX - 1.0; }

/* Ends the program on all ranks: after an error, this rank may not have what the others go on with. */
static void require(int error) {
  if (error == ADASUM_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", adasum_error_name(error), adasum_last_error());
  MPI_Abort(MPI_COMM_WORLD, error);
}

int main(int argc, char** argv) {
  static double x[rows][features], y[rows], w[parameters], gradient[parameters]; /* the last parameter is the bias */
  const size_t layers[] = {features, 1};
  const char* rule = argc > 1 ? argv[1] : "adasum";
  adasum_plan plan = ADASUM_NULL;
  adasum_report report = ADASUM_NULL;
  double first = 0, last = 0;
  int rank, epoch, row, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  srand(1 + (unsigned)rank);
  for (row = 0; row < rows; ++row)
    for (y[row] = 3, i = 0; i < features; ++i) y[row] += (i % 5 - 2) * (x[row][i] = uniform());

  require(adasum_set_timeout(MPI_COMM_WORLD, 60));
  require(adasum_plan_create(MPI_COMM_WORLD, parameters, ADASUM_DOUBLE, layers, 2, rule, "check_agreement=yes", &plan));
  for (epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    for (i = 0; i < parameters; ++i) gradient[i] = 0;
    for (row = 0; row < rows; ++row) {
      double error = w[features] - y[row];
      for (i = 0; i < features; ++i) error += w[i] * x[row][i];
      for (i = 0; i < features; ++i) gradient[i] += error * x[row][i] / rows;
      gradient[features] += error / rows;
      loss += error * error / rows;
    }
    require(adasum_plan_start(plan, gradient, parameters, ADASUM_DOUBLE));
    if (epoch == 0) first = loss; /* here: other work. It must not touch the gradient */
    last = loss;
    require(adasum_plan_wait(plan, &report));
    for (i = 0; i < parameters; ++i) w[i] -= rate * gradient[i];
  }

  if (rank == 0) {
    const size_t length = adasum_report_json(report, epochs, NULL, 0);
    char* text = malloc(length + 1);
    if (text) {
      adasum_report_json(report, epochs, text, length + 1);
      printf("%s\n", text);
      free(text);
    }
    printf("orthogonality of the weights' gradients: %.2f\n", adasum_report_orthogonality(report, 0));
    printf("mean squared error of rank 0: %.4g in the first epoch, %.4g in the last\n", first, last);
  }
  require(adasum_plan_free(&plan));
  require(adasum_report_free(&report));
  MPI_Finalize();
  return last < 0.01 * first ? EXIT_SUCCESS : EXIT_FAILURE;
}
