// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <exception>

#include "../../core/error.hpp"
#include "communicator.hpp"
#include "error.hpp"

/// Going on with the ranks that are left, where the MPI library can (User Level Failure Mitigation; Bland et al., 2013):
/// Open MPI 5 and later, under mpirun --with-ft ulfm. ADASUM_HAS_RECOVERY says whether this header has anything.
///
///     for (;;) {
///       bool good = true;
///       try {
///         plan(gradient);
///       } catch (const adasum::communication_error&) {
///         good = false;
///       }
///       if (adasum::all_succeeded(comm, good)) break;  // on all ranks, or on none
///       comm = adasum::survivors_of(comm);
///       plan = adasum::plan_allreduce<float>(exec, comm, length);
///       compute(gradient);
///     }
///
/// Making a plan can fail in the same way: put it into the same block, as examples/09_survivors.cpp does.
#if defined(OMPI_HAVE_MPI_EXT_FTMPI)
#define ADASUM_HAS_RECOVERY 1
#endif

#ifdef ADASUM_HAS_RECOVERY

namespace adasum {

namespace detail::mpi {

/// Whether `good` holds on all ranks, and all are alive; the same on all that are. Works on a revoked communicator, too.
inline bool agree(MPI_Comm comm, bool good) {
  int flag = good;
  const int code = MPIX_Comm_agree(comm, &flag);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) check("MPI_Error_class", MPI_Error_class(code, &error_class));
  if (error_class == MPIX_ERR_PROC_FAILED) return false;
  check("MPIX_Comm_agree", code);
  return flag != 0;
}

/// A communicator that is freed here: MPI_Comm_shrink makes it for a moment.
struct shrunk {
  explicit shrunk(MPI_Comm comm) {
    check("MPIX_Comm_shrink", MPIX_Comm_shrink(comm, &alive));
    MPI_Comm_set_errhandler(alive, MPI_ERRORS_RETURN);
  }
  shrunk(const shrunk&) = delete;
  shrunk& operator=(const shrunk&) = delete;
  ~shrunk() { MPI_Comm_free(&alive); }

  MPI_Comm alive = MPI_COMM_NULL;
};

}  // namespace detail::mpi

/// Whether a step went well on all ranks, none of which has died since the communicator was made; the same on all that are
/// alive. Collective over these; blocks until all have come. If `here` is false, whoever still waits in a reduction on this
/// communicator gets an error.
/// @throws mpi_error  MPI cannot go on
inline bool all_succeeded(const mpi_communicator& comm, bool here) {
  if (!here) comm.revoke();
  return detail::mpi::agree(comm.native(), here);
}

/// The ranks that are alive, in the same order, with a communicator of their own. Collective: each of them calls it after a
/// reduction has failed there, or after all_succeeded() has said no; it blocks until all have. What was made with `comm` is
/// of no use afterwards: make plans again. Its timeout is that of `comm`.
/// @throws mpi_error  MPI cannot go on
inline mpi_communicator survivors_of(const mpi_communicator& comm) {
  comm.revoke();
  for (;;) {
    const detail::mpi::shrunk now(comm.native());
    mpi_communicator made;
    std::exception_ptr problem;
    try {
      made = comm.made_again(now.alive);
    } catch (const communication_error&) {  // one more has died meanwhile
      MPIX_Comm_revoke(now.alive);          // so that nobody waits there for this rank
    } catch (...) {
      problem = std::current_exception();
      MPIX_Comm_revoke(now.alive);
    }
    if (detail::mpi::agree(now.alive, static_cast<bool>(made))) return made;
    if (problem) std::rethrow_exception(problem);
    if (made) made.revoke();
  }
}

}  // namespace adasum

#endif
