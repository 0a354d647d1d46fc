// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace adasum::detail::threads_backend {

/// How many processors the calling thread may run on: MPI binds ranks to some of a node's. At least 1.
inline std::size_t processors() {
#ifdef CPU_COUNT_S
  constexpr std::size_t sets = 8;  // 8192 processors
  cpu_set_t allowed[sets];
  if (sched_getaffinity(0, sizeof(allowed), allowed) == 0)
    return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT_S(sizeof(allowed), allowed)));
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace adasum::detail::threads_backend
