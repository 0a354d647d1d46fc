// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <adasum/exec/threads.hpp>
#include <adasum/exec/threads/team.hpp>

namespace adasum::test {

/// A threads_space that shares out whatever it can, in the smallest pieces, however little it is.
inline threads_space eager_threads(std::size_t threads, const serial_space& kernels = serial_space()) {
  struct settings : threads_space {
    explicit settings(const threads_space& space) : threads_space(space) {
      team().limits = {.least_share = 1,
                       .worth_waking = 0,
                       .smallest_piece = 1,
                       .largest_piece = 4096,
                       .sums = std::size_t{16} << 10};
    }
  };
  const threads_space space(threads, kernels);
  return settings(space);  // copies share the limits
}

}  // namespace adasum::test
