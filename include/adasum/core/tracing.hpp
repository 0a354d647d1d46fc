// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <atomic>
#include <cstddef>

namespace adasum {

/// Who is told when a thread begins and ends a step of a reduction: ranges for profilers. The ranges of a thread are nested.
/// Names are literals: "set up" (a plan, with the other ranks), "agree" (on what all ranks are about to do), "begin", "exclude"
/// (gradients that are not finite), "bring" (gradients to where they are combined), "measure" (inner products), "sum" (adds them
/// over ranks), "combine" (weights, and the linear combination), "round", "deliver" (the result), "hand over" (its parts), "finish";
/// and between the two parts of such a step, or in "set up", "wait" for other ranks.
/// The functions may be called by several threads at once.
struct tracer {
  /// @param step   its name
  /// @param stage  of the schedule, from 0
  void (*begin)(const char* step, std::size_t stage) noexcept;
  /// Of the step that the thread has begun last and not ended.
  void (*end)() noexcept;
};

/// @cond internal
namespace detail {
inline std::atomic<const tracer*> active_tracer{nullptr};

class trace_range {
 public:
  trace_range(const tracer* told, const char* step, std::size_t stage) : told_(told) {
    if (told_) told_->begin(step, stage);
  }
  trace_range(const trace_range&) = delete;
  trace_range& operator=(const trace_range&) = delete;
  ~trace_range() {
    if (told_) told_->end();
  }

 private:
  const tracer* told_;
};
}  // namespace detail
/// @endcond

/// From now on, this one is told of the reductions in this process; null: none. There are some in chrome_trace.hpp,
/// exec/cuda/nvtx.hpp and exec/kokkos/regions.hpp.
/// @param one  must live as long as the process
inline void set_tracer(const tracer* one) { detail::active_tracer = one; }

}  // namespace adasum
