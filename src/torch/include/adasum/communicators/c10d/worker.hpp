// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace adasum::detail::c10d {

/// A thread that runs one job at a time: exchanges that nobody waits for yet. (A process group runs point-to-point messages
/// by itself, but some, such as gloo's, do not tell whether one has ended without waiting for it.)
class worker {
 public:
  worker() : thread_([this] { run(); }) {}
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// @pre the last job has ended, and its wait() or test() said so
  void start(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      busy_ = true;
    }
    changed_.notify_all();
  }

  /// Whether the job has ended. @throws what it threw, once
  bool test() {
    const std::lock_guard lock(mutex_);
    if (busy_) return false;
    rethrow();
    return true;
  }
  /// Blocks until the job has ended. @throws what it threw, once
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
    rethrow();
  }

 private:
  void rethrow() {
    if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || job_; });
      if (!job_) return;
      const auto job = std::exchange(job_, nullptr);
      lock.unlock();
      std::exception_ptr failure;
      try {
        job();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  std::exception_ptr failure_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace adasum::detail::c10d
