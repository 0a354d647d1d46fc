// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <exception>
#include <utility>

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

}  // namespace adasum::detail
