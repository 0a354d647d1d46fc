// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "chance.hpp"
#include "system_memory.hpp"

namespace adasum::detail::simulated {

/// Who has the next turn, of those who can go on. The seed says in which manner: none of them finds everything. Each rank
/// that can go on gets its turn in the end.
class order_of_turns {
 public:
  order_of_turns(std::size_t ranks, chance& random) : random_(random), priorities_(ranks) {
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

  chance& random_;
  manner manner_;
  int late_;
  list<std::int64_t> priorities_;
  std::int64_t lowest_ = 0;
};

}  // namespace adasum::detail::simulated
