// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>

namespace adasum {

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
