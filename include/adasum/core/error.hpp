// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "text.hpp"

/// The exceptions of the library. Each message names what was wrong and the sizes involved.
namespace adasum {

/// Base of the library's own exceptions.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// @cond internal
  error(std::initializer_list<detail::text_part> what);
  /// @endcond
};

/// An argument of a call is unusable. Thrown before any byte of the caller's data changes.
class bad_input : public error {
  using error::error;
};

/// The ranks of one collective call do not agree on what they are doing, or one of them was given unusable input.
/// Every rank throws the same message, before any byte of the callers' data changes.
class agreement_error : public error {
  using error::error;
};

/// A gradient holds Inf or NaN, and nonfinite_policy::raise was chosen. Every rank throws it, and nothing has changed.
class nonfinite_error : public error {
  using error::error;
};

/// The ranks cannot share as much memory as is needed. Every rank throws it. Reductions that need no such memory still work.
class shared_memory_error : public error {
  using error::error;
};

/// A message did not arrive as expected: the other rank failed or left, or the message layer failed. The gradient of the call
/// in progress is then unspecified.
class communication_error : public error {
  using error::error;
};

/// Another rank did not come within the communicator's timeout or, in shared memory, within options::timeout. That rank may
/// itself have been waiting for another one.
class timeout_error : public communication_error {
 public:
  /// @param rank  the rank that this rank has waited for (the first of several); negative if it is not known
  timeout_error(const std::string& what, int rank) : communication_error(what), rank_(rank) {}
  /// @cond internal
  timeout_error(std::initializer_list<detail::text_part> what, int rank) : communication_error(what), rank_(rank) {}
  /// @endcond
  /// The rank that was waited for; negative if it is not known.
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace adasum

/// @cond internal
#if ADASUM_DEFINITIONS
namespace adasum {

ADASUM_INLINE error::error(std::initializer_list<detail::text_part> what) : std::runtime_error(detail::joined(what)) {}

}  // namespace adasum
#endif
/// @endcond
