// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#ifdef ADASUM_SKIPPED_WITHOUT_DEVICE
#include <cuda_runtime.h>
#endif

#include "mpi_end.hpp"

/// main() of the doctest programs that run on MPI. All ranks run the same test cases; the program fails if one of them
/// fails. Rank 0 prints its summary, others only what failed.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

#ifdef ADASUM_SKIPPED_WITHOUT_DEVICE
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device here");
    MPI_Finalize();
    return ADASUM_SKIPPED_WITHOUT_DEVICE;
  }
#endif
  std::ostringstream text;
  doctest::Context context(argc, argv);
  context.setCout(&text);
  const int mine = context.run();
  if (rank == 0 || mine != 0) std::cout << "rank " << rank << ":\n" << text.str() << std::flush;

  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  adasum::test::end_mpi(worst);
}
