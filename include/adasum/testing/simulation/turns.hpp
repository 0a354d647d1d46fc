// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace adasum::detail::simulated {

/// Threads of which one runs at a time: each waits for its turn, and gives it to another. What one has done, the next
/// sees. Threads, and not fibers of one thread: exceptions in flight and thread_local objects stay with their rank, and
/// sanitizers understand it.
class turns {
 public:
  explicit turns(std::size_t threads) : seats_(threads) {}

  void give(std::size_t to) {
    auto& one = seats_[to];
    {
      const std::scoped_lock lock(one.mutex);
      one.has_turn = true;
    }
    one.changed.notify_one();
  }
  void await(std::size_t self) {
    auto& one = seats_[self];
    std::unique_lock lock(one.mutex);
    one.changed.wait(lock, [&] { return one.has_turn; });
    one.has_turn = false;
  }

 private:
  struct seat {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_turn = false;
  };
  std::vector<seat> seats_;
};

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
