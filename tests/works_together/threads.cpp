// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are threads of this process: of thread_communicator, alone, simulated on two nodes, and on two nodes between which
// another communicator sends.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <adasum/comm/any.hpp>
#include <adasum/comm/routed.hpp>
#include <adasum/comm/self.hpp>
#include <adasum/comm/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>
#include <adasum/testing/simulated_communicator.hpp>

#include "abilities.hpp"
#include "check_findings.hpp"
#include "combinations.hpp"
#include "support/ranks.hpp"
#include "trials.hpp"

namespace test_of_works_together_threads {

using namespace adasum;
using namespace adasum::test;

namespace {

constexpr std::size_t drawn = 200;

/// Calls try_some(combinations) for a part of them at a time, so that each ends within the patience of on_ranks.
template <class TrySome>
void in_parts(std::span<const combination> all, const TrySome& try_some) {
  constexpr std::size_t part = 100;
  for (; !all.empty(); all = all.subspan(std::min(part, all.size()))) try_some(all.first(std::min(part, all.size())));
}

template <class Comm>
rank_findings try_on(const Comm& comm, const setting& where, std::span<const combination> some) {
  rank_findings mine;
  mine.wrong = try_combinations(any_communicator(comm), where, some, mine.found, mine.log);
  return mine;
}

}  // namespace

TEST_CASE("works together: ranks that are threads") {
  findings found;
  std::ofstream log("works_together.threads.log");
  const auto check = [&](const std::vector<rank_findings>& ranks) {
    check_ranks(ranks, log);
    found.add(ranks.front().found);
  };
  for (const int size : {2, 3, 4, 8}) {
    const setting where{.name = std::to_string(size) + " threads"};
    const auto try_all = [&](const std::vector<combination>& all) {
      in_parts(all, [&](auto some) {
        check(results_of(on_ranks(size, [&](const auto& comm) { return try_on(comm, where, some); })));
      });
    };
    if (size == 8) try_all(rules_by_schedules(size));
    if (size == 4) try_all(other_pairs(size));
    try_all(drawn_among(size, drawn));
  }
  check({try_on(self_communicator{}, {.name = "alone"}, other_pairs(1))});

  const setting two_nodes{"simulated on two nodes", {0, 1, 0, 0, 1, 1}, false};
  std::vector<rank_findings> simulated(two_nodes.nodes.size());
  const auto run = simulate(6, {.nodes = two_nodes.nodes}, [&](const simulated_communicator& comm) {
    simulated[static_cast<std::size_t>(comm.rank())] = try_on(comm, two_nodes, drawn_among(6, drawn));
  });
  for (const auto& thrown : run.thrown) CHECK(thrown == nullptr);
  CHECK(run.deadlock.empty());
  check(simulated);

  using routed_threads = routed_communicator<thread_communicator, thread_communicator>;
  const setting routed_nodes{"two nodes of a routed communicator", {}, false};
  in_parts(drawn_among(4, drawn), [&](auto some) {
    const auto first = thread_communicator::group(2), second = thread_communicator::group(2);
    const auto across = thread_communicator::group(4);
    std::vector<routed_threads> routed;
    for (std::size_t r = 0; r < 4; ++r)
      routed.emplace_back(r < 2 ? first[r] : second[r - 2], across[r], std::vector<int>{0, 0, 1, 1});
    check(results_of(on_each(std::move(routed), [&](const auto& comm) { return try_on(comm, routed_nodes, some); })));
  });

  const auto note = [&]<class Comm>(const Comm*, std::string_view name) {
    note_abilities<Comm, serial_space>(found, name, "serial_space", true);
    note_abilities<Comm, threads_space>(found, name, "threads_space", true);
  };
  note(static_cast<const self_communicator*>(nullptr), "self_communicator");
  note(static_cast<const thread_communicator*>(nullptr), "thread_communicator");
  note(static_cast<const simulated_communicator*>(nullptr), "simulated_communicator");
  note(static_cast<const routed_threads*>(nullptr), "routed_communicator");
  note(static_cast<const any_communicator*>(nullptr), "any_communicator");
  check_findings(found, "threads");
}

}  // namespace test_of_works_together_threads
