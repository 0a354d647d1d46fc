// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/waiting.hpp"

/// Threads that help others, and how they wait for work.
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
      // Either this thread sees what has come, or notify() sees that it sleeps: all four accesses are in one order.
      asleep_.store(1, std::memory_order_seq_cst);
      if (!has_come()) asleep_.wait(1, std::memory_order_relaxed);
      asleep_.store(0, std::memory_order_relaxed);
    }
    spin_.ended();
  }

  /// Whether the worker sleeps, so that it takes a system call to wake it, and some ten microseconds until it runs.
  bool is_asleep() const { return asleep_.load(std::memory_order_seq_cst) != 0; }

  /// To be called after what is waited for has been made true by a sequentially consistent store.
  void notify() {
    if (!is_asleep()) return;
    asleep_.store(0, std::memory_order_relaxed);
    asleep_.notify_one();
  }

 private:
  std::atomic<unsigned> asleep_{0};
  spinning spin_{most_looks};  // the worker's own
};

/// Threads that help the one that calls. They are started when they are first needed, and joined by the destructor.
///
/// A job is a number of items. Each thread has a range of them, the same one of every job with as many items, so that it
/// finds in its caches what it wrote there before; when it has done its own, it takes from the others'. Nobody waits for a
/// thread that has not begun: one that comes late, because the machine is busy, finds nothing left to do.
class workers {
 public:
  /// @param threads  with the calling one; at least 1
  explicit workers(std::size_t threads) : participants_(threads) {}
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;
  ~workers() {
    ends_.store(true, std::memory_order_seq_cst);
    for (auto& one : participants_) one.idle.notify();
    for (auto& one : threads_) one.join();
  }

  std::size_t size() const { return participants_.size(); }
  /// Whether one of the workers 1 … participants - 1 would begin at once. @pre the caller has the turn
  bool any_awake(std::size_t participants) const {
    const auto started = std::min(participants, threads_.size() + 1);
    for (std::size_t w = 1; w < started; ++w)
      if (!participants_[w].idle.is_asleep()) return true;
    return false;
  }

  /// The right to use the workers, and what is kept beside them. One caller at a time has it.
  class turn {
   public:
    /// Takes it if it is wanted and nobody else has it.
    turn(workers& all, bool is_wanted)
        : all_(all), is_ours_(is_wanted && all.busy_.exchange(1, std::memory_order_acquire) == 0) {}
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
      if (is_ours_) all_.busy_.store(0, std::memory_order_release);
    }
    explicit operator bool() const { return is_ours_; }

   private:
    workers& all_;
    bool is_ours_;
  };

  /// body(i) for each i < count, by this thread and the workers 1 … participants - 1. Returns when all have ended. An item
  /// for which body throws on a worker is done again by this thread: what this one throws, the caller gets.
  /// @param wakes  whether to wake those of the workers that sleep
  /// @pre the caller has the turn; a call of body that throws has changed nothing
  /// @throws error  a thread cannot be started; no item has been done
  template <class Body>
  void for_each(std::size_t participants, bool wakes, std::size_t count, const Body& body) {
    start();
    call_ = [](const void* object, std::size_t i) { (*static_cast<const Body*>(object))(i); };
    body_ = &body;
    for (std::size_t w = 0; w < participants; ++w) {
      participants_[w].next.store(count * w / participants, std::memory_order_relaxed);
      participants_[w].end = count * (w + 1) / participants;
      participants_[w].failed = none;
    }
    {
      const open_job job(*this, participants, wakes);
      take_items(0, participants, [&](std::size_t i) { body(i); });
    }
    for (std::size_t w = 1; w < participants; ++w)
      if (participants_[w].failed != none) body(participants_[w].failed);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  struct alignas(64) participant {
    std::atomic<std::size_t> next{0};  // of its items
    std::size_t end = 0;
    std::size_t failed = none;  // the item for which body threw on this worker, which then ends its work
    alignas(64) idle_wait idle;
  };

  // The job, in one number: which one it is, 32 bits; how many threads take part, the caller included, or 0 if it is
  // closed, 16 bits; how many workers are at it, 16 bits.
  static constexpr unsigned number_at = 32, participants_at = 16;
  static constexpr std::uint64_t sixteen_bits = 0xffff;
  static constexpr std::uint64_t number_of(std::uint64_t job) { return job >> number_at; }
  static constexpr std::size_t participants_of(std::uint64_t job) { return (job >> participants_at) & sixteen_bits; }
  static constexpr std::size_t at_work(std::uint64_t job) { return job & sixteen_bits; }

  /// A job from its beginning until the last worker has left it, also if the caller throws.
  class open_job {
   public:
    open_job(workers& all, std::size_t participants, bool wakes) : all_(all) {
      const auto number = number_of(all.job_.load(std::memory_order_relaxed)) + 1;
      all.job_.store(number << number_at | std::uint64_t{participants} << participants_at, std::memory_order_seq_cst);
      for (std::size_t w = 1; wakes && w < participants; ++w) all.participants_[w].idle.notify();
    }
    open_job(const open_job&) = delete;
    open_job& operator=(const open_job&) = delete;
    ~open_job() {
      all_.job_.fetch_and(~(sixteen_bits << participants_at), std::memory_order_relaxed);  // nobody begins any more
      while (at_work(all_.job_.load(std::memory_order_acquire)) != 0)
        if (all_.spin_.again())
          pause_between_looks();
        else
          std::this_thread::yield();
      all_.spin_.ended();
    }

   private:
    workers& all_;
  };

  void start() {
    while (threads_.size() + 1 < size()) {
      const auto self = threads_.size() + 1;
      try {
        threads_.emplace_back([this, self] { work(self); });
      } catch (const std::system_error& failure) {
        throw error(
            {"adasum::threads_space: thread ", self + 1, " of ", size(), " cannot be started: ", failure.what()});
      }
    }
  }

  /// What worker `self` does all its life.
  void work(std::size_t self) {
    for (std::uint64_t last = 0;;) {
      std::uint64_t job = 0;
      participants_[self].idle.wait([&] {
        job = job_.load(std::memory_order_seq_cst);
        return (self < participants_of(job) && number_of(job) != last) || ends_.load(std::memory_order_seq_cst);
      });
      if (ends_.load(std::memory_order_relaxed)) return;
      last = number_of(job);
      const auto participants = participants_of(job);
      while (number_of(job) == last && participants_of(job) != 0)
        if (job_.compare_exchange_weak(job, job + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
          help(self, participants);
          job_.fetch_sub(1, std::memory_order_release);
          break;
        }
    }
  }

  void help(std::size_t self, std::size_t participants) {
    std::size_t item = none;
    try {
      take_items(self, participants, [&](std::size_t i) {
        item = i;
        call_(body_, i);
      });
    } catch (...) {
      participants_[self].failed = item;
    }
  }

  template <class Take>
  void take_items(std::size_t self, std::size_t participants, const Take& take) {
    for (std::size_t w = 0; w < participants; ++w) {
      auto& range = participants_[(self + w) % participants];
      for (std::size_t i; (i = range.next.fetch_add(1, std::memory_order_relaxed)) < range.end;) take(i);
    }
  }

  std::vector<participant> participants_;  // the first is the caller
  std::vector<std::thread> threads_;
  spinning spin_{most_looks};  // of the callers, one at a time
  void (*call_)(const void*, std::size_t) = nullptr;
  const void* body_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> job_{0};
  std::atomic<bool> ends_{false};
  alignas(64) std::atomic<unsigned> busy_{0};  // no bool: on riscv64, GCC 12 needs libatomic to exchange single bytes
};

}  // namespace adasum::detail::threads_backend
