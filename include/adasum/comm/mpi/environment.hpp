// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <thread>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "error.hpp"

/// Whether MPI can be called: from here, and at this time.
namespace adasum::detail::mpi {

/// Whether MPI_Finalize has been called. What MPI objects are left then can no longer be freed.
inline bool finalized() {
  int flag = 0;
  return MPI_Finalized(&flag) != MPI_SUCCESS || flag;
}

/// Whether MPI_Init has been called. Programs whose communicators come from sessions (MPI 4) may do without.
inline bool initialized() {
  int flag = 0;
  check("MPI_Initialized", MPI_Initialized(&flag));
  return flag != 0;
}

/// @param comm  for which MPI is needed
inline void require_initialized([[maybe_unused]] MPI_Comm comm) {
  if (initialized()) {
    if (finalized()) throw bad_input("adasum::mpi_communicator: MPI has already been finalised");
    return;
  }
#if MPI_VERSION >= 4
  // Any other communicator was made from a session, or it would not be there.
  if (comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF) return;
#endif
  throw bad_input("adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)");
}

/// MPI_THREAD_SINGLE and MPI_THREAD_FUNNELED confine MPI to the thread that initialised it. What sessions allow can be asked
/// of the session alone. @pre MPI can be used
inline detail::permitted_thread permitted_thread() {
  detail::permitted_thread found;
#ifndef SMPI_H  // SimGrid's ranks are threads of a simulator, which lets one of them run at a time
  if (!initialized()) return found;
  int level = MPI_THREAD_MULTIPLE;
  check("MPI_Query_thread", MPI_Query_thread(&level));
  if (level != MPI_THREAD_SINGLE && level != MPI_THREAD_FUNNELED) return found;
  found.why =
      "MPI was initialised with MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED, so only the thread that initialised it may use "
      "MPI, and this is another thread; call MPI_Init_thread with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE";
  int is_main = 1;
  check("MPI_Is_thread_main", MPI_Is_thread_main(&is_main));
  if (is_main) found.thread = std::this_thread::get_id();
#endif
  return found;
}

}  // namespace adasum::detail::mpi
