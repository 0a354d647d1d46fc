// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <mutex>
#include <optional>

#include "../../core/error.hpp"

/// MPI ends the program at an error unless the error handler of a communicator says otherwise. Which communicator that
/// is depends on the call; where it is one of the caller's, its handler is replaced for a moment and put back.
namespace adasum {

/// An MPI call failed.
class mpi_error : public communication_error {
 public:
  /// @param call  the function that failed; @param code  what it returned
  mpi_error(const char* call, int code);

  /// The name of the function that failed, such as "MPI_Comm_dup".
  const char* call() const { return call_; }
  /// The error code that it returned.
  int code() const { return code_; }

 private:
  const char* call_;
  int code_;
};

namespace detail::mpi {

/// @throws mpi_error  naming the call, unless it succeeded
inline void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw mpi_error(call, code);
}

/// While this object lives, errors on `comm` come back as codes.
class errors_returned {
 public:
  explicit errors_returned(MPI_Comm comm) : comm_(comm) {
    check("MPI_Comm_get_errhandler", MPI_Comm_get_errhandler(comm_, &callers_));
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  }
  errors_returned(const errors_returned&) = delete;
  errors_returned& operator=(const errors_returned&) = delete;
  ~errors_returned() {
    MPI_Comm_set_errhandler(comm_, callers_);
    MPI_Errhandler_free(&callers_);  // the reference that MPI_Comm_get_errhandler gave, not the handler
  }

 private:
  MPI_Comm comm_;
  MPI_Errhandler callers_ = MPI_ERRHANDLER_NULL;
};

#if defined(MPICH_VERSION) || defined(ADASUM_MPI_ABI)
/// While this object lives, errors of requests come back as codes. MPI_Wait, MPI_Test and their like report them on the
/// communicator of the request; MPICH (4.0) and what is built on it use MPI_COMM_WORLD instead, and a program for
/// MPI's ABI may run with it. Several threads may be waiting: the first replaces the handler, the last puts it back.
class request_errors_returned {
 public:
  request_errors_returned() {
    const std::scoped_lock lock(mutex_);
    if (count_ == 0) world_.emplace(MPI_COMM_WORLD);
    ++count_;
  }
  request_errors_returned(const request_errors_returned&) = delete;
  request_errors_returned& operator=(const request_errors_returned&) = delete;
  ~request_errors_returned() {
    const std::scoped_lock lock(mutex_);
    if (--count_ == 0) world_.reset();
  }

 private:
  inline static std::mutex mutex_;
  inline static int count_ = 0;
  inline static std::optional<errors_returned> world_;
};
#else
struct request_errors_returned {
  request_errors_returned() {}  // not trivial: an unused variable of this type is no mistake
};
#endif

}  // namespace detail::mpi
}  // namespace adasum

#if ADASUM_MPI_DEFINITIONS
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace adasum {

namespace detail::mpi {

inline std::string describe(const char* call, int code) {
  // As long as MPICH's, which may be here in place of another MPI.
  std::array<char, std::max(MPI_MAX_ERROR_STRING, 512)> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  return joined({"adasum: ", call, " failed: ", std::string(text.data(), static_cast<std::size_t>(length))});
}

}  // namespace detail::mpi

ADASUM_MPI_INLINE mpi_error::mpi_error(const char* call, int code)
    : communication_error(detail::mpi::describe(call, code)), call_(call), code_(code) {}

}  // namespace adasum
#endif
