// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Reductions among the ranks of an MPI communicator: mpi_communicator, mpi_error, device_messages.

#include "../core/config.hpp"

#include "mpi/communicator.hpp"  // IWYU pragma: export
#include "mpi/error.hpp"         // IWYU pragma: export
