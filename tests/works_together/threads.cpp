// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are threads of this process: of thread_communicator, alone, and simulated on two nodes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <adasum/communicators/any.hpp>
#include <adasum/communicators/self.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/testing/simulated_communicator.hpp>

#include "check_findings.hpp"
#include "combinations.hpp"
#include "support/ranks.hpp"
#include "trials.hpp"

namespace test_of_works_together_threads {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Calls try_some(combinations) for a part of them at a time, so that each ends within the patience of on_ranks.
template <class TrySome>
void in_parts(std::span<const combination> all, const TrySome& try_some) {
  constexpr std::size_t part = 100;
  for (; !all.empty(); all = all.subspan(std::min(part, all.size()))) try_some(all.first(std::min(part, all.size())));
}

template <class Comm>
rank_findings try_on(const Comm& comm, const setting& where, std::span<const combination> some) {
  rank_findings mine;
  mine.wrong = try_combinations(any_communicator(comm), where, some, mine.found);
  return mine;
}

}  // namespace

TEST_CASE("works together: ranks that are threads") {
  findings found;
  const auto check = [&](const std::vector<rank_findings>& ranks) {
    check_ranks(ranks);
    found.add(ranks.front().found);
  };
  const auto try_all = [&](int size, const std::vector<combination>& all) {
    in_parts(all, [&](auto some) {
      check(results_of(
          on_ranks(size, [&](const auto& comm) { return try_on(comm, {.name = "thread_communicator"}, some); })));
    });
  };
  try_all(8, rules_by_schedules(8));
  try_all(4, other_pairs(4));
  for (const int size : {2, 3}) try_all(size, drawn_among(size));
  check({try_on(self_communicator{}, {.name = "self_communicator"}, schedules_of(1))});

  const setting two_nodes{"simulated_communicator", {0, 1, 0, 0, 1, 1}, false};
  std::vector<rank_findings> simulated(two_nodes.nodes.size());
  const auto run = simulate(6, {.nodes = two_nodes.nodes}, [&](const simulated_communicator& comm) {
    simulated[static_cast<std::size_t>(comm.rank())] = try_on(comm, two_nodes, schedules_of(6));
  });
  for (const auto& thrown : run.thrown) CHECK(thrown == nullptr);
  CHECK(run.deadlock.empty());
  check(simulated);
  check_findings(found, "threads");
}

}  // namespace test_of_works_together_threads
