// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect only: write adasum::mpi_communicator.comm.
#include <adasum/adasum.hpp>

/// What MPI_Comm is with Open MPI. (With MPICH it is an int.)
struct ompi_communicator_t;

void use(std::vector<float>& gradient, [[maybe_unused]] ompi_communicator_t* comm) {
#ifdef CORRECTED
  adasum::adasum_allreduce(adasum::serial_space{}, adasum::self_communicator{}, gradient);
#else
  adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient);
#endif
}
