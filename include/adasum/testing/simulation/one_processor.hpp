// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#ifdef __linux__
#include <sched.h>
#endif

namespace adasum::detail::simulated {

/// As long as it exists, the calling thread, and those that it starts, stay on the processor where it is. Threads that take
/// turns gain by that: another processor would have to be woken each time, which takes ten times as long. On other systems
/// than Linux, and where it is not allowed, nothing happens.
class one_processor {
 public:
  one_processor() {
#ifdef CPU_ALLOC
    const int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof(before_), before_) != 0) return;
    cpu_set_t only[sets];
    CPU_ZERO_S(sizeof(only), only);
    CPU_SET_S(static_cast<unsigned>(here), sizeof(only), only);
    is_set_ = sched_setaffinity(0, sizeof(only), only) == 0;
#endif
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() {
#ifdef CPU_ALLOC
    if (is_set_) sched_setaffinity(0, sizeof(before_), before_);
#endif
  }

#ifdef CPU_ALLOC
 private:
  static constexpr int sets = 8;  // 8192 processors
  cpu_set_t before_[sets];
  bool is_set_ = false;
#endif
};

}  // namespace adasum::detail::simulated
