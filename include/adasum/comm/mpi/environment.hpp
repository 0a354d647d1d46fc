// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <string>

#include "../../core/error.hpp"
#include "error.hpp"

/// Whether MPI can be called: from here, and at this time.
namespace adasum::detail::mpi {

/// Whether MPI_Finalize has been called. What MPI objects are left then can no longer be freed.
inline bool finalized() {
  int flag = 0;
  return MPI_Finalized(&flag) != MPI_SUCCESS || flag;
}

inline void require_initialized() {
  int flag = 0;
  check("MPI_Initialized", MPI_Initialized(&flag));
  if (!flag) throw bad_input("adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)");
  if (finalized()) throw bad_input("adasum::mpi_communicator: MPI has already been finalised");
}

/// MPI_THREAD_SINGLE and MPI_THREAD_FUNNELED confine MPI to the thread that initialised it.
inline void require_permitted_thread() {
#ifndef SMPI_H  // SimGrid's ranks are threads of a simulator, which lets one of them run at a time
  int level = MPI_THREAD_SINGLE, is_main = 1;
  check("MPI_Query_thread", MPI_Query_thread(&level));
  if (level != MPI_THREAD_SINGLE && level != MPI_THREAD_FUNNELED) return;
  check("MPI_Is_thread_main", MPI_Is_thread_main(&is_main));
  if (is_main) return;
  throw bad_input(std::string("adasum::mpi_communicator: MPI was initialised with ") +
                  (level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED") +
                  ", so only the thread that initialised it may use MPI, and this is another thread; call "
                  "MPI_Init_thread with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
#endif
}

}  // namespace adasum::detail::mpi
