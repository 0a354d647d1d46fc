// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <array>
#include <cstddef>
#include <string>

#include "../../core/error.hpp"

namespace adasum {

/// An MPI call failed.
class mpi_error : public communication_error {
 public:
  /// @param call  the function that failed; @param code  what it returned
  mpi_error(const char* call, int code) : communication_error(describe(call, code)), call_(call), code_(code) {}

  /// The name of the function that failed, such as "MPI_Comm_dup".
  const char* call() const { return call_; }
  /// The error code that it returned.
  int code() const { return code_; }

 private:
  static std::string describe(const char* call, int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
    return std::string("adasum: ") + call + " failed: " + std::string(text.data(), static_cast<std::size_t>(length));
  }

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
