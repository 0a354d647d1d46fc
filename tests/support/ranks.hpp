// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <adasum/communicators/threads.hpp>

#include "kept_threads.hpp"

namespace adasum::test {

/// What became of one rank: the value that its function returned, or what it threw.
template <class Value>
struct outcome {
  std::optional<Value> value;
  std::exception_ptr error;

  template <class Exception>
  bool threw() const {
    return message_of<Exception>().has_value();
  }
  /// The text of the exception, if it is one of these.
  template <class Exception>
  std::optional<std::string> message_of() const {
    if (!error) return {};
    try {
      std::rethrow_exception(error);
    } catch (const Exception& e) {
      return e.what();
    } catch (...) {
      return {};
    }
  }
  /// What happened, for messages.
  std::string description() const {
    return value ? "returned" : "threw " + message_of<std::exception>().value_or("something else");
  }
};

/// Far beyond what any of these tests needs, sanitizers and a busy machine included. An emulator needs much longer.
#ifdef ADASUM_TEST_EMULATED
inline constexpr std::chrono::seconds patience{1800};
#else
inline constexpr std::chrono::seconds patience{60};
#endif

/// What runs now, for the message of a hang.
inline std::string& case_under_test() {
  static std::string name;
  return name;
}

/// The work of ranks, of which it can be told afterwards how it ended.
struct told_work : work_of_ranks {
  virtual std::string end_of(std::size_t rank) const = 0;  ///< empty for one that has not returned
};

/// The work of so many ranks, each on a thread of its own. A rank that still waits when the patience is over cannot be freed, so
/// that ends the process with a message.
inline void run_on_threads(std::size_t size, told_work& work) {
  kept_threads::of_program().run(size, work, patience, [&](std::size_t waiting) {
    std::fprintf(stderr, "a reduction hangs: %zu of %zu ranks have returned; %s\n", size - waiting, size,
                 case_under_test().c_str());
    for (std::size_t r = 0; r < size; ++r)
      if (const auto text = work.end_of(r); !text.empty()) std::fprintf(stderr, "  one of these %s\n", text.c_str());
    std::_Exit(EXIT_FAILURE);
  });
}

/// function(communicator) on a thread for each communicator.
template <class Communicator, class Function>
auto on_each(std::vector<Communicator> ranks, const Function& function) {
  struct calls final : told_work {
    std::vector<Communicator>& ranks;
    const Function& function;
    std::vector<outcome<std::invoke_result_t<const Function&, Communicator&>>> outcomes;

    calls(std::vector<Communicator>& all, const Function& one) : ranks(all), function(one), outcomes(all.size()) {}
    void run(std::size_t r) noexcept override {
      try {
        outcomes[r].value.emplace(function(ranks[r]));
      } catch (...) {
        outcomes[r].error = std::current_exception();
      }
    }
    std::string end_of(std::size_t r) const override {
      return outcomes[r].value || outcomes[r].error ? outcomes[r].description() : std::string();
    }
  } work(ranks, function);
  run_on_threads(ranks.size(), work);
  return std::move(work.outcomes);
}

/// The same on a thread_communicator of so many ranks. Every rank's handle is kept until all have returned: no rank is
/// saved from waiting by another one's leaving.
template <class Function>
auto on_ranks(int size, const Function& function) {
  return on_each(thread_communicator::group(size), function);
}

/// What each rank returned. Any exception fails the test.
template <class Value>
std::vector<Value> results_of(std::vector<outcome<Value>> ranks) {
  std::vector<Value> results;
  for (auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    results.push_back(std::move(*rank.value));
  }
  return results;
}

}  // namespace adasum::test
