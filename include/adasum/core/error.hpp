// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

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

namespace adasum::detail {

/// The exception that make() returns; if there is no memory for it, std::bad_alloc.
template <class Make>
std::exception_ptr exception_from(Make&& make) noexcept {
  try {
    throw std::forward<Make>(make)();
  } catch (...) {
    return std::current_exception();
  }
}

/// Keeps the first exception of several steps until it can be rethrown. A rank that fails in the middle of a collective
/// call uses it: the others wait for its messages, so it goes on exchanging them, and rethrows once none is waiting.
class deferred_error {
 public:
  /// Runs the step, unless an earlier one failed.
  template <class Step>
  void operator()(Step&& step) {
    if (!failed()) even_after_failure(std::forward<Step>(step));
  }

  /// Runs the step in any case: other ranks depend on it.
  template <class Step>
  void even_after_failure(Step&& step) {
    try {
      std::forward<Step>(step)();
    } catch (...) {
      if (!failed()) first_ = std::current_exception();
    }
  }

  bool failed() const { return first_ != nullptr; }
  void rethrow() const {
    if (failed()) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

/// For communicators. An exchange that throws std::bad_alloc counts as not begun (core/concepts.hpp). So where one has
/// ended, and there is no memory for its error, one that was made beforehand is thrown.
class ended_exchange {
 public:
  /// Runs throw_error(), which throws if something went wrong.
  template <class ThrowError>
  void report(ThrowError&& throw_error) const {
    try {
      std::forward<ThrowError>(throw_error)();
    } catch (const std::bad_alloc&) {
      throw communication_error(without_memory_);
    }
  }

 private:
  communication_error without_memory_{"adasum: an exchange has failed, and there is no memory to say why"};
};

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS

namespace adasum {

ADASUM_INLINE error::error(std::initializer_list<detail::text_part> what) : std::runtime_error(detail::joined(what)) {}

}  // namespace adasum
#endif
