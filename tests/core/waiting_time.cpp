// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <thread>

#include <adasum/core/error.hpp>
#include <adasum/core/waiting.hpp>

namespace test_of_core_waiting_time {

using namespace std::chrono_literals;
using adasum::detail::waiting_time;

TEST_CASE("a limit is exceeded when that long has been waited, and none never is") {
  waiting_time waited;
  CHECK_FALSE(waited.exceeds(1h));
  std::this_thread::sleep_for(2ms);
  CHECK(waited.exceeds(1ms));
  CHECK_FALSE(waited.exceeds(adasum::no_timeout));
}

TEST_CASE("of a pause in which nothing was asked, a second counts at the most") {
  waiting_time waited;
  std::this_thread::sleep_for(1100ms);
  CHECK_FALSE(waited.exceeds(1050ms));
}

TEST_CASE("a timeout is positive") {
  CHECK_NOTHROW(adasum::detail::require_timeout(1ms, "call"));
  CHECK_NOTHROW(adasum::detail::require_timeout(adasum::no_timeout, "call"));
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH_AS(adasum::detail::require_timeout(std::chrono::duration<double>(wrong), "call"),
                         doctest::Contains("call: the timeout is "), adasum::bad_input);
  CHECK(adasum::detail::is_limited(1s));
  CHECK_FALSE(adasum::detail::is_limited(adasum::no_timeout));
}

}  // namespace test_of_core_waiting_time
