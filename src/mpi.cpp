// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define ADASUM_MPI_IMPLEMENTATION
#include <adasum/mpi.hpp>

namespace adasum::detail {
template communicator_table table_of_communicator<mpi_communicator, serial_space>;
}  // namespace adasum::detail
