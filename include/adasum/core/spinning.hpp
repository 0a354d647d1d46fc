// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>

namespace adasum::detail {

/// How often a thread that waits looks again, before it offers the processor to others: for long, where that has mostly
/// been enough, since a processor that is offered comes back after milliseconds if anything else runs on the machine.
/// Where there are more ranks than processors, the one that is waited for may need this very processor, and looking on
/// is in vain: so each time that it was in vain, the number of looks falls to a quarter.
///
///     while (!has_come())
///       if (!spin.again()) std::this_thread::yield();
///     spin.ended();
class spinning {
 public:
  static constexpr unsigned least = 200;

  /// @param most  looks that take about a tenth of a millisecond
  explicit spinning(unsigned most) : most_(most), limit_(most) {}

  /// @return whether to look again at once
  bool again() { return ++looks_ < limit_; }
  /// What was waited for has come.
  void ended() {
    if (looks_ >= limit_)
      limit_ = std::max(least, limit_ / 4);
    else if (looks_ > 0)
      limit_ = std::min(most_, 2 * limit_);
    looks_ = 0;
  }
  unsigned limit() const { return limit_; }

 private:
  unsigned most_, limit_, looks_ = 0;
};

}  // namespace adasum::detail
