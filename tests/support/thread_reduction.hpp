// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "foreign.hpp"
#include "ranks.hpp"
#include "reduction.hpp"
#include "schedule_simulation.hpp"
#include "schedules.hpp"

namespace adasum::test {

/// Reduces gradients[rank] on as many threads. Any exception fails the test.
template <scalar T, class Rule, class Schedule, class Options = options>
std::vector<reduced<T>> reduce_on_threads(const std::vector<std::vector<T>>& gradients, const segments& segs,
                                          const Rule& rule, const Schedule& order, const Options& choices = {}) {
  return results_of(on_ranks(static_cast<int>(gradients.size()), [&](const thread_communicator& comm) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    auto found = combine_allreduce(serial_space{}, comm, gradient, rule, segs, order, choices);
    return reduced<T>{std::move(gradient), std::move(found)};
  }));
}

/// One set of gradients by every schedule.
template <scalar T, class Rule>
void check_every_schedule(const std::vector<std::vector<T>>& gradients, const segments& segs, const Rule& rule) {
  const auto expected = expectation::of<T>(rule, gradients, segs);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto ranks = reduce_on_threads<T>(gradients, segs, rule, order);
    check_same_on_all_ranks(ranks);
    check_reduced(ranks.front(), expected, gradients, segs);
    CHECK(ranks.front().found.rule() == Rule::name);
  });
}

/// Every rule and schedule on these numbers of ranks, each on segmentations with empty and odd segments, and on
/// another kind of gradients each time.
template <scalar T>
void check_reductions(const std::vector<int>& rank_counts, const std::vector<std::size_t>& lengths) {
  std::size_t turn = 0;
  for (const int size : rank_counts)
    for (const auto length : lengths) {
      const auto seed = ++turn;
      const auto kind = all_gradient_kinds[turn % all_gradient_kinds.size()];
      const segments segs(random_segments(length, 1 + turn % 6, seed));
      const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), length, seed, kind);
      CAPTURE(size);
      CAPTURE(length);
      CAPTURE(std::string(to_string(kind)));
      check_every_schedule(gradients, segs, rules::adasum{});
      check_every_schedule(gradients, segs, rules::sum{});
      check_every_schedule(gradients, segs, rules::mean{});
    }
}

inline const std::vector<int> all_rank_counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};

}  // namespace adasum::test
