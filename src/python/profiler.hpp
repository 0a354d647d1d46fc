// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <optional>

namespace adasum::python {

/// Whether the environment variable ADASUM_TORCH_PROFILER asks for reductions in PyTorch's profiler; if so, steps of reductions
/// are recorded as guard says. Not unasked: a profile that ends while one is in flight frees what its open ranges write to.
bool profiler_is_asked_for();

/// Whether PyTorch's profiler records what a thread does, to be handed on to another that works for it: PyTorch does so for its
/// own threads alone.
class profiler_of_thread {
 public:
  /// Of this thread.
  static profiler_of_thread here();

  /// While it lives, what this thread does is recorded, too: PyTorch's operators, and ranges of the whole and of its steps
  /// (core/tracing.hpp).
  class guard {
   public:
    guard(const profiler_of_thread& other, const char* whole);
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard();

   private:
    std::optional<c10::DebugInfoGuard> info_;
    std::optional<at::RecordFunctionTLS> before_;
  };

 private:
  struct recording {
    std::shared_ptr<c10::ThreadLocalDebugInfo> info;
    at::RecordFunctionTLS callbacks;
  };
  std::optional<recording> recording_;
};

}  // namespace adasum::python
