// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/optional_members.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "combine_in_groups.hpp"
#include "combine_window.hpp"
#include "fence_on_failure.hpp"
#include "measure_round.hpp"
#include "recombine.hpp"
#include "rounds.hpp"

/// measure → weigh → mix of gradients of one process.
namespace adasum::detail {

/// The segments of a round that inner products could not decide.
/// @param observe  k is counted within the round
inline void recombine_round(const space_ref& space, const rule_ref& rule, const slice& window, vector_list vectors,
                            std::span<const std::size_t> leaf_counts, std::size_t first_segment, std::byte* out,
                            const round_memory& memory, segment_observer observe) {
  const bool whole_model = rule.weighs_whole_model();
  const auto elements = [&](std::size_t k) { return recombined_elements(window, k, whole_model); };
  const auto parts = whole_model ? memory.segments() : 1;
  std::vector<double> scratch(recombination::scratch_size(rule, memory.unsettled.size() * parts, vectors.size()));
  recombination run(space, rule, vectors, leaf_counts, memory.unsettled, parts, first_segment, elements, scratch);
  fence_on_failure guard(space);    // of the copies
  while (!run.advance().empty()) {  // alone: there is nothing to add
  }
  finish_recombination(space, run, out, observe, [](index_range) {});
  guard.dismiss();
}

/// measure → weigh → mix of n vectors of this process, round by round.
/// @param leaf_counts  how many gradients each vector already combines; 0 for one that takes no part
/// @param observe      is told of each segment
/// @param measure      whether to measure; false only for a rule that needs no Gram matrix
/// @param sums         how the space keeps sums in double, if many vectors are to be combined in groups; else null
inline void combine_segments(const space_ref& space, const rule_ref& rule, vector_list vectors,
                             std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments,
                             segment_observer observe, bool measure = true, const sums_table* sums = nullptr) {
  const std::size_t n = vectors.size();
  const bool whole_model = rule.weighs_whole_model();
  const local_rounds rounds(segments, n * space.element_size(), whole_model, space.round_bytes());
  const std::size_t round = rounds.longest();
  const bool in_groups = sums != nullptr && rule.follows_tree() && rule.needs_gram() && measure && !whole_model &&
                         grouping::pays(n, segments);
  // Entries of the Gram matrix of all vectors, where that is needed.
  const std::size_t entries = in_groups && grouping::takes_all(n) ? 0 : packed_size(n);
  // Two vectors are the common case and often short: no allocation there.
  constexpr std::size_t few = 2;
  std::array<double, (local_rounds::most + 1) * (packed_size(few) + few)> on_stack;
  const bool fits = n <= few && round <= local_rounds::most;
  const std::size_t needed = (round + 1) * (entries + n);
  const auto on_heap = fits ? nullptr : std::make_unique_for_overwrite<double[]>(needed);
  const std::span<double> memory = fits ? std::span<double>(on_stack) : std::span(on_heap.get(), needed);
  const auto limits = limits_for(space.format(), n, space.copies_are_double());
  weigh_scratch scratch(entries == 0 || (rule.is_pairwise() && n == 2) ? 0 : n);
  std::vector<std::size_t> unsettled;
  std::optional<combination_in_groups> groups;
  if (in_groups) groups.emplace(space, *sums, rule, vectors, leaf_counts, segments, round, limits);
  fence_on_failure guard(space);  // of the sums of groups, and of the caller's vectors and result
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
        measure_round(rule, space, window, vectors, arrays.gram.data(), segments);
      else
        std::ranges::fill(arrays.gram, 0.0);
      std::exception_ptr problem;
      weigh_window(rule, leaf_counts, first, arrays, limits, problem);
      if (problem) std::rethrow_exception(problem);
      for_each_settled(arrays, whole_model, [&](std::size_t k) { observe_one(k, outcome_of(arrays, k)); });
      mix_window(space, rule, window, vectors, arrays, out, {}, bytes_of(space, n, segments));
    }
    if (!unsettled.empty()) recombine_round(space, rule, window, vectors, leaf_counts, first, out, arrays, observe_one);
  }
  space.fence();
  guard.dismiss();
}

}  // namespace adasum::detail
