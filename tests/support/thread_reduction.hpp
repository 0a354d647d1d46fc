// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "foreign.hpp"
#include "random_gradients.hpp"
#include "ranks.hpp"
#include "reduction.hpp"
#include "schedule_simulation.hpp"
#include "schedules.hpp"

namespace adasum::test {

/// Reduces `count` elements at gradients[rank] on as many threads, in place. Any exception fails the test. By the engine behind
/// combine_allreduce, so that it is compiled once for all rules and schedules.
std::vector<report> reduce_on_threads(const detail::space_ref& space, std::span<std::byte* const> gradients,
                                      std::size_t count, segments_view segs, detail::rule_ref rule,
                                      detail::schedule_ref order, const basic_options<true>& choices);

template <scalar T, class Rule, class Schedule>
std::vector<reduced<T>> reduce_on_threads(std::vector<std::vector<T>> gradients, const segments& segs, const Rule& rule,
                                          const Schedule& order, const options& choices = {}) {
  std::vector<std::byte*> elements;
  for (auto& gradient : gradients) elements.push_back(reinterpret_cast<std::byte*>(gradient.data()));
  const serial_space exec;
  auto found = reduce_on_threads(detail::ref_to_space<T>(exec), elements, gradients.front().size(), segs, rule, order,
                                 detail::options_of_plan(choices));
  std::vector<reduced<T>> ranks;
  for (std::size_t r = 0; r < gradients.size(); ++r) ranks.push_back({std::move(gradients[r]), std::move(found[r])});
  return ranks;
}

/// One set of gradients by every schedule.
template <scalar T, class Rule>
void check_every_schedule(const std::vector<std::vector<T>>& gradients, const segments& segs, const Rule& rule) {
  const auto expected = expectation::of<T>(rule, gradients, segs);
  for_each_schedule([&](const any_schedule& order, const std::string& name) {
    CAPTURE(name);
    const auto ranks = reduce_on_threads<T>(gradients, segs, rule, order);
    check_same_on_all_ranks(ranks);
    check_reduced(ranks.front(), expected, segs);
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

}  // namespace adasum::test
