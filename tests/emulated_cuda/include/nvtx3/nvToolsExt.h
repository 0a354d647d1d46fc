// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

/// Ranges of the calling thread: those that are open, and all that there have been.
struct emulated_ranges {
  int open = 0;
  std::vector<std::string> names;
};
inline thread_local emulated_ranges nvtx_ranges;

inline int nvtxRangePushA(const char* name) {
  nvtx_ranges.names.emplace_back(name);
  return nvtx_ranges.open++;
}
inline int nvtxRangePop() { return --nvtx_ranges.open; }
