// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <exception>
#include <utility>

#include "../../core/error.hpp"
#include "agreement.hpp"
#include "transport/messages.hpp"

namespace adasum::detail {

/// The step `agree` of a run (steps.hpp), which can be waited for as any other.
class agreement_in_run {
 public:
  /// A run begins, perhaps without that step.
  void reset() { is_waited_for_ = false; }
  void prepare(agreement run) { run_ = std::move(run); }

  /// @param by  the messages of the reduction
  /// @throws what agreement::require throws
  progress take(messages& by) {
    is_waited_for_ = by.next_of(run_) == progress::waits;
    if (is_waited_for_) return progress::waits;
    run_.require();
    return progress::done;
  }

  /// Whether what a run waits for is there, this or another step. @param block  wait until it is
  bool arrived(transport& by, bool block) {
    if (!is_waited_for_) return by.arrived(block);
    try {
      return by.arrived(block);
    } catch (const timeout_error&) {
      throw;
    } catch (...) {  // the others wait for the messages that follow
      if (!run_.fail(std::current_exception())) throw;
      return true;
    }
  }

 private:
  agreement run_;
  bool is_waited_for_ = false;
};

}  // namespace adasum::detail
