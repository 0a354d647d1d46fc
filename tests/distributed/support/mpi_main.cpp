// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstdio>
#include <iostream>
#include <sstream>

/// main() of the doctest programs that run on MPI. All ranks run the same test cases; the program fails if one of them
/// fails. Rank 0 prints its summary, others only what failed.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  std::ostringstream text;
  doctest::Context context(argc, argv);
  context.setCout(&text);
  const int mine = context.run();
  if (rank == 0 || mine != 0) std::cout << "rank " << rank << ":\n" << text.str() << std::flush;

  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return worst;
}
