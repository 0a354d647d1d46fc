// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

/// Rank 0's answer on every rank, so that all of them go on, or stop, together.
template <class T>
T agreed(T value) {
  MPI_Bcast(&value, sizeof value, MPI_BYTE, 0, MPI_COMM_WORLD);
  return value;
}
