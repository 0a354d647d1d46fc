// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include "error.hpp"

namespace adasum {

/// The timeout of a communicator that has none.
inline constexpr std::chrono::duration<double> no_timeout{std::numeric_limits<double>::infinity()};

namespace detail {

inline bool is_limited(std::chrono::duration<double> timeout) { return std::isfinite(timeout.count()); }

/// For messages: "0.3 seconds".
inline std::string text_of(std::chrono::duration<double> time) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, std::end(digits), time.count()).ptr) +
         (time == std::chrono::seconds(1) ? " second" : " seconds");
}

/// @throws bad_input  a timeout that is not positive
inline void require_timeout(std::chrono::duration<double> timeout, std::string_view call) {
  if (!(timeout.count() > 0))  // nor NaN
    throw bad_input(std::string(call) + ": the timeout is " + text_of(timeout) + "; it must be positive");
}

/// Counts how long a rank waits. It is asked again and again; of a longer pause between two questions, only one second
/// counts: a process that was stopped, perhaps with all others, did not wait meanwhile.
class waiting_time {
 public:
  bool exceeds(std::chrono::duration<double> limit) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    waited_ += std::min<duration<double>>(now - last_, seconds(1));
    last_ = now;
    return waited_ > limit;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::duration<double> waited_{0};
};

}  // namespace detail
}  // namespace adasum
