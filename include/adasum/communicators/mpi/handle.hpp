// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <thread>
#include <utility>

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
  // Two texts that are there already: to make one takes memory, and a rank that has none would leave the others waiting.
  found.why = level == MPI_THREAD_SINGLE
                  ? "MPI was initialised with MPI_THREAD_SINGLE, so only the thread that initialised it may use MPI, "
                    "and this is another thread; call MPI_Init_thread with MPI_THREAD_SERIALIZED or "
                    "MPI_THREAD_MULTIPLE"
                  : "MPI was initialised with MPI_THREAD_FUNNELED, so only the thread that initialised it may use "
                    "MPI, and this is another thread; call MPI_Init_thread with MPI_THREAD_SERIALIZED or "
                    "MPI_THREAD_MULTIPLE";
  int is_main = 1;
  check("MPI_Is_thread_main", MPI_Is_thread_main(&is_main));
  if (is_main) found.thread = std::this_thread::get_id();
#endif
  return found;
}

inline int size_of(MPI_Comm comm) {
  int size = 0;
  check("MPI_Comm_size", MPI_Comm_size(comm, &size));
  return size;
}
inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  check("MPI_Comm_rank", MPI_Comm_rank(comm, &rank));
  return rank;
}

/// A communicator that this library made and frees, unless MPI has been finalised by then. Its errors come back as
/// codes.
class communicator_handle {
 public:
  communicator_handle(communicator_handle&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_) {}
  communicator_handle& operator=(communicator_handle&&) = delete;
  ~communicator_handle() {
    if (comm_ != MPI_COMM_NULL && !finalized()) MPI_Comm_free(&comm_);
  }

  /// Collective over `original`, under whose error handler MPI_Comm_dup runs.
  static communicator_handle duplicate(MPI_Comm original) {
    const errors_returned from_here_on(original);
    int is_inter = 0;
    check("MPI_Comm_test_inter", MPI_Comm_test_inter(original, &is_inter));
    if (is_inter)
      throw bad_input("adasum::mpi_communicator: an inter-communicator cannot be used (see MPI_Intercomm_merge)");
    MPI_Comm made = MPI_COMM_NULL;
    check("MPI_Comm_dup", MPI_Comm_dup(original, &made));
    return communicator_handle(made);
  }

  /// The ranks that share memory with this one, in the same order. Collective over `whole`.
  static communicator_handle shared_memory_part(const communicator_handle& whole) {
    MPI_Comm made = MPI_COMM_NULL;
    check("MPI_Comm_split_type",
          MPI_Comm_split_type(whole.get(), MPI_COMM_TYPE_SHARED, whole.rank(), MPI_INFO_NULL, &made));
    return communicator_handle(made);
  }

  /// Whoever waits in it gets an error, and so does every later call; where the MPI library can.
  void revoke() const {
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    if (comm_ != MPI_COMM_NULL) MPIX_Comm_revoke(comm_);
#endif
  }

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  communicator_handle() = default;
  // By way of the default constructor: if a call here fails, the destructor frees what was made.
  explicit communicator_handle(MPI_Comm made) : communicator_handle() {
    comm_ = made;
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    rank_ = rank_in(comm_);
    size_ = size_of(comm_);
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace adasum::detail::mpi
