// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "call_sites.hpp"
#include "memory.hpp"
#include "ranks.hpp"

namespace adasum::test::model {

/// What has been found.
struct finding {
  std::string problem;     ///< empty: none
  std::string trace;       ///< what the ranks did until then, a line for each access to an atomic
  std::size_t states = 0;  ///< or paths
  bool complete = true;    ///< or there were too many states
};

/// Runs a scenario in every way that the memory model allows: in every order of the ranks' atomic loads, with every value
/// that each of them may read.
///
/// Ranks are contexts that take turns. Only loads are decided on, and sequentially consistent stores. Any other store can be
/// made at once: whoever might come before it can still read the message before. What is not atomic is in order, or a race in any order of turns. One path through
/// these decisions is run after the other, from the beginning; a path ends where a state is one that has been seen.
///
/// Where nobody will write a location any more, a load of it needs no other order of turns. Who writes how often is learned:
/// if a location turns out to be written more often than on any path before, all is explored again.
///
/// A rank that waits reads the same messages again and again. It is asked where it goes on from each call site that it comes
/// to for the first time since it has learned anything. Having read nothing new `patience` times, which is longer than any
/// turn of the library's loops takes to come to all its checks, it is stuck until there is something new in what it reads.
/// Where all are stuck, they wait for ever.
class explorer {
 public:
  explicit explorer(call_sites& sites) : sites_(sites) {}

  /// @param weakened  the call site whose order is to be relaxed; call_sites::none for none
  finding explore(const scenario& one, std::size_t weakened, std::size_t most_states);
  /// The same along so many random paths. A rank goes on for a while before another one does: defects that need few changes of
  /// turns are found so (Burckhardt, Kothari, Musuvathi, Nagarakatte, 2010).
  finding walk(const scenario& one, std::size_t weakened, std::size_t paths);

  // ── what ranks do: see instrumentation.cpp ──

  std::uint64_t load(std::uintptr_t site, std::size_t word, std::memory_order order);
  void store(std::uintptr_t site, std::size_t word, std::uint64_t value, std::memory_order order);
  void access(std::uintptr_t site, std::size_t word, bool writes);
  void checkpoint(std::uint64_t label);
  void in_loop();
  void require(bool good, const char* what);
  void let_time_fly(bool does);
  std::int64_t seconds();

  /// The one that explores.
  static explorer* current;

 private:
  static constexpr unsigned patience = 600;
  static constexpr std::size_t stack_bytes = std::size_t{1} << 18;

  /// A message that a rank has read at a call site, since it has learned something new or stored anything.
  struct reading {
    std::uintptr_t site;
    std::size_t location, message;
    bool again = false;  // twice, although there was a newer one
  };
  struct rank_at_work {
    enum class status { asks, stuck, ended } is = status::ended;
    ucontext_t context{};                 // to begin with
    std::array<void*, 5> continuation{};  // for __builtin_setjmp, which makes no system calls
    bool has_begun = false;
    std::unique_ptr<char[]> stack;
    std::uintptr_t site = 0;  // of the access that is to be decided on
    std::memory_order order = std::memory_order_relaxed;
    bool stores = false;       // whether it is a store: then there is nothing to choose, but who comes first
    std::size_t location = 0;  // of the last load
    std::size_t chosen = 0;
    std::uint64_t label = 0, history = 0;  // from which its state follows
    std::vector<reading> readings;
    unsigned nothing_new = 0;
    bool time_flies = false;
    std::int64_t seconds = 0;
  };
  struct decision {
    std::size_t rank, message;
  };
  struct state {
    std::vector<decision> decisions;
    std::size_t next = 0;
  };

  finding explore_once(std::size_t most_states);
  void begin();
  static void run_current();
  void run(std::size_t rank);
  void go_back_to_explorer();
  [[noreturn]] static void jump(std::array<void*, 5>& to);
  void run_those_with_news();
  bool has_news(const rank_at_work& one) const;
  void decide(const decision& one);
  std::vector<decision> decisions();
  std::uint64_t hash() const;
  bool all_ended() const;
  std::string problem_at_end() const;
  reading* last_reading(std::uintptr_t site, std::size_t location);
  std::memory_order order_at(std::uintptr_t site, std::memory_order order, std::memory_order next_weaker);
  void trace(std::uintptr_t site, const char* what, std::size_t word, std::uint64_t value);
  std::string explain(const std::vector<state>& path);

  call_sites& sites_;
  memory memory_;
  scenario scenario_;
  std::size_t weakened_ = 0;
  std::array<rank_at_work, most_ranks> ranks_;
  std::size_t at_work_ = 0;  // the rank whose turn it is
  std::array<void*, 5> own_{};
  std::unordered_set<std::uint64_t> seen_;
  std::array<std::size_t, memory::most_locations> most_messages_{};  // stored in each location on any path
  bool knew_too_few_messages_ = false;
  bool traces_ = false;
  std::string trace_;
};

}  // namespace adasum::test::model
