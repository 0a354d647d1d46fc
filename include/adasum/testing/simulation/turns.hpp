// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

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

}  // namespace adasum::detail::simulated
