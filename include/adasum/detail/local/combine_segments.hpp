// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"
#include "combine_in_groups.hpp"
#include "combine_window.hpp"
#include "fence_on_failure.hpp"
#include "measure_round.hpp"
#include "recombine.hpp"
#include "rounds.hpp"

/// measure → weigh → mix of gradients of one process.
namespace adasum::detail {

/// For callers that want no outcomes.
struct no_observer {
  void operator()(std::size_t, const segment_outcome&) const {}
};

/// The segments of a round that inner products could not decide.
/// @param observe  observe(k, segment_outcome), k counted within the round
template <scalar T, execution_space<T> Space, rule Rule, class Observer>
void recombine_round(const Space& space, Rule& rule, const slice& window, std::span<const T* const> vectors,
                     std::span<const std::size_t> leaf_counts, std::size_t first_segment, T* out,
                     const round_memory& memory, const Observer& observe) {
  const bool whole_model = weighs_whole_model(rule);
  const auto elements = [&](std::size_t k) { return recombined_elements(window, k, whole_model); };
  using recombination = detail::recombination<T, Space, Rule>;
  const auto parts = whole_model ? memory.segments() : 1;
  std::vector<double> scratch(recombination::scratch_size(memory.unsettled.size() * parts, vectors.size()));
  recombination run(space, rule, vectors, leaf_counts, memory.unsettled, parts, first_segment, elements, scratch);
  fence_on_failure<Space> guard(space);  // of the copies
  while (!run.advance().empty()) {       // alone: there is nothing to add
  }
  finish_recombination(space, run, out, observe, [](index_range) {});
  guard.dismiss();
}

/// measure → weigh → mix of n vectors of this process, round by round.
/// @param leaf_counts  how many gradients each vector already combines; 0 for one that takes no part
/// @param observe      observe(k, segment_outcome) for each segment; or no_observer
/// @param measure      whether to measure; false only for a rule that needs no Gram matrix
template <scalar T, execution_space<T> Space, rule Rule, class Observer>
void combine_segments(const Space& space, Rule& rule, std::span<const T* const> vectors,
                      std::span<const std::size_t> leaf_counts, T* out, segments_view segments, const Observer& observe,
                      bool measure = true) {
  const std::size_t n = vectors.size();
  const bool whole_model = weighs_whole_model(rule);
  const local_rounds<Space> rounds(segments, n * sizeof(T), whole_model);
  const std::size_t round = rounds.longest();
  // Two vectors are the common case and often short: no allocation there.
  constexpr std::size_t few = 2, few_segments = local_rounds<Space>::most;
  const bool fits = n <= few && round <= few_segments;
  std::array<double, (few_segments + 1) * (packed_size(few) + few)> on_stack;
  constexpr bool may_group = tree_rule<Rule> && needs_gram<Rule> && combines_in_groups<Space, T>;
  const bool in_groups = may_group && measure && !whole_model && grouping::pays(n, segments);
  // Entries of the Gram matrix of all vectors, where that is needed.
  const std::size_t entries = in_groups && grouping::takes_all(n) ? 0 : packed_size(n);
  std::vector<double> on_heap(fits ? 0 : (round + 1) * (entries + n));
  const auto memory = fits ? std::span<double>(on_stack) : std::span(on_heap);
  const auto limits = limits_for<T>(n, recombines_in_double<Space, T>);
  weigh_scratch scratch(entries == 0 || (pairwise_rule<Rule> && n == 2) ? 0 : n);
  std::vector<std::size_t> unsettled;
  std::optional<std::conditional_t<may_group, combination_in_groups<T, Space, Rule>, no_groups>> groups;
  if constexpr (may_group)
    if (in_groups) groups.emplace(space, rule, vectors, leaf_counts, segments, round, limits);
  fence_on_failure<Space> guard(space);  // of the sums of groups, and of the caller's vectors and result

  for (std::size_t first = 0, count = 0; first < segments.size(); first += count) {
    count = rounds.length_from(first);
    const auto part = segments.part(first, count);
    const slice window{part, part.all(), 0};
    auto rest = memory;
    const auto take = [&](std::size_t size) { return std::exchange(rest, rest.subspan(size)).first(size); };
    const round_memory arrays{n, take(count * entries), take(count * n), take(n), take(entries), scratch, unsettled};
    const auto observe_one = [&](std::size_t k, const segment_outcome& outcome) { observe(first + k, outcome); };
    if (groups && groups->pays_for(window)) {
      groups->run(window, arrays, segments, out, observe_one);
    } else {
      if (measure)
        measure_round<Rule>(space, window, vectors, arrays.gram.data(), segments);
      else
        std::ranges::fill(arrays.gram, 0.0);
      std::exception_ptr problem;
      weigh_window(rule, leaf_counts, first, arrays, limits, problem);
      if (problem) std::rethrow_exception(problem);
      if constexpr (!std::is_same_v<Observer, no_observer>)
        for_each_settled(arrays, whole_model, [&](std::size_t k) { observe_one(k, outcome_of(arrays, k)); });
      mix_window<T>(space, rule, window, vectors, arrays, out, written_anywhere{}, bytes_of<T>(vectors, segments));
    }
    if (!unsettled.empty())
      recombine_round<T>(space, rule, window, vectors, leaf_counts, first, out, arrays, observe_one);
  }
  space.fence();
  guard.dismiss();
}

}  // namespace adasum::detail
