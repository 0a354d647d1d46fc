// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <vector>

#include "error.hpp"
#include "handle.hpp"

namespace adasum::detail::mpi {

/// The ranks that share memory with this one (MPI_COMM_TYPE_SHARED). To make it is collective over `whole`.
struct node {
  explicit node(const communicator_handle& whole)
      : comm(communicator_handle::shared_memory_part(whole)), ranks(static_cast<std::size_t>(comm.size())) {
    const int mine = whole.rank();
    check("MPI_Allgather", MPI_Allgather(&mine, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm.get()));
  }

  communicator_handle comm;
  std::vector<int> ranks;  // of the whole communicator, ascending
};

}  // namespace adasum::detail::mpi
