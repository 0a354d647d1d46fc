// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The library and its MPI communicator, in one include.

#include "adasum.hpp"    // IWYU pragma: export
#include "comm/mpi.hpp"  // IWYU pragma: export
