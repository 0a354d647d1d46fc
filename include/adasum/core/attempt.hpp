// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <utility>

/// Failures that wait until nobody depends on this rank any more.
namespace adasum::detail {

/// Runs steps of which any may throw. The first exception is kept; what comes after it is skipped. A rank that must
/// still take part in sums with others does so, and rethrows where they can be told.
class attempt {
 public:
  template <class Step>
  void operator()(Step&& step) {
    if (!failed()) even_after_failure(std::forward<Step>(step));
  }

  /// For steps on whose outcome the number of further sums depends.
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
