// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include "../../core/error.hpp"

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

}  // namespace detail::mpi

}  // namespace adasum

#if ADASUM_MPI_DEFINITIONS
#include <array>
#include <cstddef>
#include <string>

namespace adasum {

namespace detail::mpi {

inline std::string describe(const char* call, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  return joined({"adasum: ", call, " failed: ", std::string(text.data(), static_cast<std::size_t>(length))});
}

}  // namespace detail::mpi

ADASUM_MPI_INLINE mpi_error::mpi_error(const char* call, int code)
    : communication_error(detail::mpi::describe(call, code)), call_(call), code_(code) {}

}  // namespace adasum
#endif
