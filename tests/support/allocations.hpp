// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <limits>
#include <utility>

/// Programs that use this are linked with allocations.cpp, which replaces operator new.
namespace adasum::test {

/// How often the calling thread has called operator new.
std::size_t allocations();
/// How many of all threads' allocations are there now.
std::ptrdiff_t live_allocations();

/// Which of the calling thread's next allocations fail.
struct planned_failures {
  std::size_t successes = 0;  ///< before the first that fails
  std::size_t in_a_row = 0;
  std::size_t failed = 0;  ///< so far
};
planned_failures& failures_of_this_thread();

/// While this object lives, the calling thread runs out of memory after so many allocations, for so many in a row.
class failing_allocations {
 public:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  explicit failing_allocations(std::size_t successes, std::size_t in_a_row = 1) {
    failures_of_this_thread() = {successes, in_a_row};
  }
  failing_allocations(const failing_allocations&) = delete;
  failing_allocations& operator=(const failing_allocations&) = delete;
  ~failing_allocations() { failures_of_this_thread() = {}; }

  /// Whether an allocation has failed.
  bool any() const { return failures_of_this_thread().failed > 0; }
};

#ifdef ADASUM_TEST_SANITIZED  // where each run takes ten times as long
inline constexpr std::size_t allocations_apart = 4;
#else
inline constexpr std::size_t allocations_apart = 1;
#endif
/// A test lets allocation first_to_fail() of some calls fail, and then every one that is allocations_apart from the one
/// before: each, or one in four, from another one on in each case, also where cases come in pairs.
inline std::size_t first_to_fail() {
  static std::size_t cases = 0;
  const auto number = cases++;
  return (number + number / allocations_apart) % allocations_apart;
}

/// What make() returns. Its allocations neither fail nor are counted among those before the first that fails.
template <class Make>
auto without_failures(const Make& make) {
  struct pause {
    planned_failures planned = std::exchange(failures_of_this_thread(), {});
    ~pause() { failures_of_this_thread() = planned; }
  } const paused;
  return make();
}

}  // namespace adasum::test
