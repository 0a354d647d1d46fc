// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "../../core/spinning.hpp"

namespace adasum::detail::threads_backend {

/// Until a thread looks again, so that another on the same core gets its turn: some 100 ns (an x86 processor pauses for 10 to
/// 140 cycles each time).
inline void pause_between_looks() {
  for (int i = 0; i < 8; ++i) {
#if defined(__x86_64__) || defined(__i386__)
    asm volatile("pause" ::: "memory");
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
  }
}

/// Looks that take some tenths of a millisecond at the most. The fewest that `spinning` allows take 5 to 100 microseconds,
/// and measure is followed by mix in less.
inline constexpr unsigned most_looks = 1000;

/// Where one worker waits while there is nothing to do: it looks for a while, since measure is followed by mix, and then
/// sleeps, so that it costs nothing.
class idle_wait {
 public:
  /// Returns once has_come() is true.
  template <class Predicate>
  void wait(const Predicate& has_come) {
    while (!has_come()) {
      if (spin_.again()) {
        pause_between_looks();
        continue;
      }
      std::unique_lock lock(mutex_);
      // Either this thread sees what has come, or notify() sees that it sleeps: all four accesses are in one order.
      asleep_.store(true, std::memory_order_seq_cst);
      awoken_.wait(lock, has_come);
      asleep_.store(false, std::memory_order_relaxed);
      break;
    }
    spin_.ended();
  }

  /// Whether the worker sleeps, so that it takes a system call to wake it, and some ten microseconds until it runs.
  bool is_asleep() const { return asleep_.load(std::memory_order_seq_cst); }

  /// To be called after what is waited for has been made true by a sequentially consistent store.
  void notify() {
    if (!is_asleep()) return;
    {
      const std::lock_guard lock(mutex_);
    }  // if it has looked in vain, it waits by now
    awoken_.notify_one();
  }

 private:
  std::atomic<bool> asleep_{false};
  spinning spin_{most_looks};  // the worker's own
  std::mutex mutex_;
  std::condition_variable awoken_;
};

}  // namespace adasum::detail::threads_backend
