// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/communicators/any.hpp>
#include <adasum/communicators/mpi.hpp>

namespace adasum::c {

/// This library's communicator for one of the caller's: made when it is first asked for (collective then), and kept with it, as
/// an attribute, until MPI_Comm_free or MPI_Finalize.
/// @throws bad_input  MPI_COMM_NULL, an inter-communicator; MPI is not initialised, or finalised already
/// @throws mpi_error  a function of MPI failed
const any_communicator& communicator_of(MPI_Comm comm, const char* call);
/// The same, with what MPI's alone has.
const mpi_communicator& mpi_communicator_of(MPI_Comm comm, const char* call);

/// @throws bad_input  MPI has been finalised
void require_not_finalized(const char* call);

}  // namespace adasum::c
