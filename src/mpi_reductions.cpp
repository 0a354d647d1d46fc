// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/mpi.hpp>

namespace adasum {
ADASUM_COMPILED_REDUCTIONS(, mpi_communicator)
}  // namespace adasum
