// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

#include "system_memory.hpp"

/// Whose turn it is among simulated ranks.
namespace adasum::detail::simulated {

/// Numbers that follow from a seed, the same everywhere (splitmix64: Steele, Lea, Flood, OOPSLA 2014).
class rng {
 public:
  explicit rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() { return mixed(state_ += 0x9E3779B97F4A7C15u); }
  /// In [0, bound); 0 where that is empty.
  std::size_t below(std::size_t bound) { return bound > 1 ? static_cast<std::size_t>(bits() % bound) : 0; }
  bool one_in(std::size_t count) { return below(count) == 0; }

  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

/// Who has the next turn, of those who can go on. The seed says in which manner: none of them finds everything. Each rank
/// that can go on gets its turn in the end.
class order_of_turns {
 public:
  order_of_turns(std::size_t ranks, rng& random) : random_(random), priorities_(ranks) {
    manner_ = static_cast<manner>(random.below(static_cast<std::size_t>(manner::count)));
    late_ = static_cast<int>(random.below(ranks));
    for (auto& one : priorities_) one = static_cast<std::int64_t>(random.below(1000));
  }

  /// @param able   the ranks that can go on, ascending, not empty
  /// @param self   who has had the turn
  /// @param asks   whether that rank waits by asking again and again
  int next(std::span<const int> able, int self, bool asks) {
    switch (manner_) {
      case manner::any: break;
      case manner::stay:
        if (!asks && !random_.one_in(1000) && std::ranges::binary_search(able, self)) return self;
        break;
      case manner::round: {
        const auto after = std::ranges::upper_bound(able, self);
        return after == able.end() ? able.front() : *after;
      }
      case manner::priority: {
        if (self >= 0 && (asks || random_.one_in(20))) priorities_[static_cast<std::size_t>(self)] = --lowest_;
        return *std::ranges::max_element(able, {},
                                         [&](int rank) { return priorities_[static_cast<std::size_t>(rank)]; });
      }
      case manner::one_late:
      case manner::count:
        if (random_.one_in(64) && std::ranges::binary_search(able, late_)) return late_;
        for (int tries = 0; tries < 8; ++tries)
          if (const int one = able[random_.below(able.size())]; one != late_) return one;
        break;
    }
    return able[random_.below(able.size())];
  }

 private:
  enum class manner {
    any,       ///< each with the same probability
    stay,      ///< mostly the same as before, until it waits
    round,     ///< one after the other
    priority,  ///< that of the highest priority, which changes rarely (Burckhardt et al., ASPLOS 2010)
    one_late,  ///< one rank is seldom chosen
    count
  };

  rng& random_;
  manner manner_;
  int late_;
  list<std::int64_t> priorities_;
  std::int64_t lowest_ = 0;
};

/// Threads of which one runs at a time: each waits for its turn, and gives it to another. What one has done, the next
/// sees. Threads, and not fibers of one thread: exceptions in flight and thread_local objects stay with their rank, and
/// sanitizers understand it.
class scheduler {
 public:
  explicit scheduler(std::size_t threads) : seats_(threads) {}

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
