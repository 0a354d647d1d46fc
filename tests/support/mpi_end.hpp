// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace adasum::test {

/// Ends MPI and this process. MPICH before 4.2 over UCX and TCP, so on several nodes (ADASUM_TEST_NODES), may wait for ever
/// in MPI_Finalize (https://github.com/pmodels/mpich/pull/6596): there it is left out. Its launcher would take that for a crash,
/// and kill the node's other ranks, so it is told what MPI_Finalize tells it (the message "finalize" of PMI 1).
[[noreturn]] inline void end_mpi(int status) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
  if (std::getenv("ADASUM_TEST_NODES") != nullptr) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::fflush(nullptr);
    if (const char* const launcher = std::getenv("PMI_FD")) {
      const int to_launcher = std::atoi(launcher);
      char answer[64];
      if (dprintf(to_launcher, "cmd=finalize\n") < 0 || read(to_launcher, answer, sizeof(answer)) < 0)
        std::perror("PMI");
    }
    std::_Exit(status);
  }
#endif
  MPI_Finalize();
  std::exit(status);
}

}  // namespace adasum::test
