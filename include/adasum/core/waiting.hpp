// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>

/// How ranks and threads wait: how long, how often they look again, and what interrupts them.
namespace adasum {

/// The timeout of a communicator that has none.
inline constexpr std::chrono::duration<double> no_timeout{std::numeric_limits<double>::infinity()};

namespace detail {

inline bool is_limited(std::chrono::duration<double> timeout) { return timeout.count() < no_timeout.count(); }

/// For messages: "0.3 seconds".
std::string text_of(std::chrono::duration<double> time);

/// @throws bad_input  a timeout that is not positive
void require_timeout(std::chrono::duration<double> timeout, std::string_view call);

/// Counts how long a rank waits. It is asked again and again; of a longer pause between two questions, only one second
/// counts: a process that was stopped, perhaps with all others, did not wait meanwhile.
class waiting_time {
 public:
  bool exceeds(std::chrono::duration<double> limit);

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::duration<double> waited_{0};
};

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

}  // namespace detail

/// Whether the program has been asked to stop waiting: by a signal, for instance.
using interruption_check = bool (*)();

/// From now on, a rank of an mpi_communicator that waits for others, by messages or in shared memory, asks check() on its
/// thread, some twenty times a second. Once that returns true, the wait ends as if its time were over, with a timeout_error:
/// see mpi_communicator::set_timeout for what is then left to do. check() must not throw. To be set before the first
/// communication, for the whole process, by whoever answers its signals.
/// @param check  null: nothing is asked any more, as at first
/// @return the one before
interruption_check set_interruption_check(interruption_check check) noexcept;

namespace detail {

bool can_be_interrupted();

/// Asks on behalf of one who waits, so seldom that it costs nothing.
class interruption {
 public:
  bool is_requested();

 private:
  std::chrono::steady_clock::time_point last_;
};

}  // namespace detail
}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <atomic>

#include "error.hpp"

namespace adasum::detail {

ADASUM_INLINE std::string text_of(std::chrono::duration<double> time) {
  return joined({time.count(), time.count() == 1 ? " second" : " seconds"});
}

ADASUM_INLINE void require_timeout(std::chrono::duration<double> timeout, std::string_view call) {
  if (!(timeout.count() > 0))  // nor NaN
    throw bad_input({call, ": the timeout is ", text_of(timeout), "; it must be positive"});
}

ADASUM_INLINE bool waiting_time::exceeds(std::chrono::duration<double> limit) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> since = now - last_;
  waited_ += since.count() < 1 ? since : std::chrono::duration<double>(1);
  last_ = now;
  return waited_.count() > limit.count();
}

}  // namespace adasum::detail

namespace adasum {

namespace detail {
inline std::atomic<interruption_check> interruption_asked_for{nullptr};
}

ADASUM_INLINE interruption_check set_interruption_check(interruption_check check) noexcept {
  return detail::interruption_asked_for.exchange(check);
}

ADASUM_INLINE bool detail::can_be_interrupted() {
  return interruption_asked_for.load(std::memory_order_acquire) != nullptr;
}

ADASUM_INLINE bool detail::interruption::is_requested() {
  const auto check = interruption_asked_for.load(std::memory_order_acquire);
  if (!check) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(50)) return false;
  last_ = now;
  return check();
}

}  // namespace adasum
#endif
