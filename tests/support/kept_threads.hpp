// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace adasum::test {

/// What several ranks do. Apart from the types of communicators and results, so that few functions are compiled for each.
struct work_of_ranks {
  virtual ~work_of_ranks() = default;
  virtual void run(std::size_t rank) noexcept = 0;
};

/// Threads that are kept from one piece of work to the next. To start one takes a tenth of a millisecond, and several
/// milliseconds under ThreadSanitizer: more than most reductions of these tests.
///
/// As with new threads, each sees what its caller has done, and the caller what all have done. Among themselves, they have
/// nothing in common: the lock that one takes at its end, none takes at its beginning, or ThreadSanitizer would see an order
/// there that is none. What is thread_local stays; of the library that is only room for more than 64 vectors.
class kept_threads {
 public:
  kept_threads() = default;
  kept_threads(const kept_threads&) = delete;
  kept_threads& operator=(const kept_threads&) = delete;
  ~kept_threads() {
    for (const auto& one : seats_) one->give(nullptr, 0);
  }

  /// Those of this program.
  static kept_threads& of_program() {
    static kept_threads all;
    return all;
  }

  /// work.run(0), …, work.run(size - 1) at the same time, each on a thread of its own. Several callers may do so at once, and
  /// work may do so in its turn.
  /// @param on_hang  on_hang(how many have not ended) is called when the patience is over, and must end the process
  /// @throws std::system_error  the system has no more threads; none has begun
  template <class OnHang>
  void run(std::size_t size, work_of_ranks& work, std::chrono::seconds patience, const OnHang& on_hang) {
    batch all{work, size, {}};
    const auto seats = take(size);
    for (std::size_t rank = 0; rank < size; ++rank) seats[rank]->give(&all, rank);
    std::unique_lock lock(mutex_);
    if (!all.ended.wait_for(lock, patience, [&] { return all.running == 0; })) on_hang(all.running);
  }

 private:
  /// The work of one call of run().
  struct batch {
    work_of_ranks& work;
    std::size_t running;
    std::condition_variable ended;
  };

  /// Where one thread waits for work.
  class seat {
   public:
    /// @param all  null: the thread is to end
    void give(batch* all, std::size_t rank) {
      {
        const std::scoped_lock lock(mutex_);
        given_.emplace(all, rank);
      }
      changed_.notify_one();
    }
    std::pair<batch*, std::size_t> await() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return given_.has_value(); });
      return *std::exchange(given_, {});
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<std::pair<batch*, std::size_t>> given_;
  };

  std::vector<seat*> take(std::size_t count) {
    const std::scoped_lock lock(mutex_);
    while (idle_.size() < count) {
      auto& one = *seats_.emplace_back(std::make_unique<seat>());
      idle_.reserve(seats_.size());  // so that no thread allocates when it has ended its work
      threads_.emplace_back([this, &one] { work_at(one); });
      idle_.push_back(&one);
    }
    const auto first = idle_.end() - static_cast<std::ptrdiff_t>(count);
    const std::vector<seat*> taken(first, idle_.end());
    idle_.erase(first, idle_.end());
    return taken;
  }

  void work_at(seat& mine) {
    for (;;) {
      const auto [all, rank] = mine.await();
      if (all == nullptr) return;
      all->work.run(rank);
      const std::scoped_lock lock(mutex_);
      idle_.push_back(&mine);
      if (--all->running == 0) all->ended.notify_one();
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<seat>> seats_;
  std::vector<seat*> idle_;
  std::vector<std::jthread> threads_;  // joined before what they use is gone
};

}  // namespace adasum::test
