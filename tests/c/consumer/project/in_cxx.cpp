// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C library from C++, of any standard.
#include <adasum/adasum.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  float value = 3;
  const int error = adasum_allreduce(MPI_COMM_WORLD, &value, 1, ADASUM_FLOAT, nullptr, 0, "mean", nullptr, nullptr);
  std::printf("%s: %g\n", adasum_error_name(error), static_cast<double>(value));
  MPI_Finalize();
  return error == ADASUM_SUCCESS && value > 2.99f && value < 3.01f ? 0 : 1;
}
