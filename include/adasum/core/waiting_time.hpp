// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <chrono>
#include <limits>
#include <string>
#include <string_view>

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

}  // namespace detail
}  // namespace adasum

#if ADASUM_DEFINITIONS

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
#endif
