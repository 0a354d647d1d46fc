// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The library and its MPI communicator, in one include.

#include "core/config.hpp"

#include "adasum.hpp"    // IWYU pragma: export
#include "communicators/mpi.hpp"  // IWYU pragma: export

#if defined(ADASUM_COMPILED_MPI)  // by the target adasum::compiled_mpi
namespace adasum::detail {
extern template communicator_table table_of_communicator<mpi_communicator, serial_space>;
}  // namespace adasum::detail
#endif
