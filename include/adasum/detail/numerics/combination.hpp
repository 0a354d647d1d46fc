// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "../../core/options.hpp"
#include "../../core/report.hpp"
#include "../../core/segments.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"
#include "../references/sums_table.hpp"

/// Combinations of this process's vectors.
namespace adasum::detail {

/// measure → weigh → mix of n vectors.
/// @param leaf_counts  how many gradients each vector already combines; 0 for one that takes no part
/// @param sums         how the space keeps sums in double, if many vectors are to be combined in groups; else null
void combine_vectors(const space_ref& space, const rule_ref& rule, vector_list vectors,
                     std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments,
                     const sums_table* sums = nullptr);

/// The same of n gradients, with what is to be said of them.
/// @throws nonfinite_error  as combine()
report combine_with_report(const space_ref& space, const rule_ref& rule, std::vector<const void*> vectors,
                           std::byte* out, segments_view segments, const basic_options<true>& choices,
                           const sums_table* sums);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "../../core/error.hpp"
#include "../../core/report_writer.hpp"
#include "../../core/space_members.hpp"
#include "combine_in_groups.hpp"
#include "combine_window.hpp"
#include "nonfinite.hpp"
#include "recombine.hpp"

namespace adasum::detail {

/// The segments of a round that inner products could not decide.
/// @param observe  k is counted within the round
ADASUM_INLINE void recombine_round(const space_ref& space, const rule_ref& rule, const slice& window,
                                   vector_list vectors, std::span<const std::size_t> leaf_counts,
                                   std::size_t first_segment, std::byte* out, const round_memory& memory,
                                   segment_observer observe) {
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

/// combine_vectors, round by round.
/// @param observe  is told of each segment
/// @param measure  whether to measure; false only for a rule that needs no Gram matrix
ADASUM_INLINE void combine_segments(const space_ref& space, const rule_ref& rule, vector_list vectors,
                                    std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments,
                                    segment_observer observe, bool measure, const sums_table* sums) {
  const std::size_t n = vectors.size();
  const bool whole_model = rule.weighs_whole_model();
  const std::size_t limit = whole_model ? 0 : space.round_bytes();  // 0: there is one round
  const std::size_t round = limit == 0 ? segments.size() : std::min(segments.size(), most_in_round);
  const bool in_groups = sums != nullptr && rule.follows_tree() && rule.needs_gram() && measure && !whole_model &&
                         grouping::pays(n, segments);
  // Entries of the Gram matrix of all vectors, where that is needed.
  const std::size_t entries = in_groups && grouping::takes_all(n) ? 0 : packed_size(n);
  // Two vectors are the common case and often short: no allocation there.
  constexpr std::size_t few = 2;
  std::array<double, (most_in_round + 1) * (packed_size(few) + few)> on_stack;
  const bool fits = n <= few && round <= most_in_round;
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
    count = limit == 0 ? round : segments_of_round(segments, first, n * space.element_size(), limit);
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

/// Which of this process's gradients take part, where not all of them may be finite. One that does not is replaced by
/// zeros, as a rank's gradient is.
class local_participants {
 public:
  local_participants(const space_ref& space, std::vector<const void*>& vectors, segments_view segments)
      : space_(space), vectors_(vectors), segments_(segments), leaf_counts_(vectors.size(), 1) {}

  /// @throws nonfinite_error if `raise` and a gradient is not finite
  void decide(bool raise, report_writer& found) {
    const auto k = segments_.size(), n = vectors_.size();
    flags_.resize(n * k);
    std::vector<double> gram(k);
    for (std::size_t i = 0; i < n; ++i) {
      const auto mine = std::span(flags_).subspan(i * k, k);
      find_nonfinite(space_, vectors_[i], segments_, gram, mine);
      if (std::ranges::find(mine, 1) == mine.end()) continue;
      leaf_counts_[i] = 0;
      found.exclude(static_cast<int>(i));
    }
    if (found.get().excluded().empty()) return;
    if (raise) throw nonfinite_error({"adasum: Inf or NaN in ", describe_nonfinite(flags_, k, "gradient")});
    zeros_.emplace(space_.allocate(segments_.all().end));
    std::ranges::fill(gram, 0.0);
    space_.mix(whole(segments_), vector_list(vectors_).first(1), gram.data(), zeros_->data());
    for (std::size_t i = 0; i < n; ++i)
      if (leaf_counts_[i] == 0) vectors_[i] = zeros_->data();
  }

  std::span<const std::size_t> leaf_counts() const { return leaf_counts_; }
  void finish(report_writer& found) const { found.finish_excluded(flags_); }

 private:
  const space_ref& space_;
  std::vector<const void*>& vectors_;
  segments_view segments_;
  std::vector<std::size_t> leaf_counts_;
  std::vector<unsigned char> flags_;
  std::optional<space_memory> zeros_;
};

ADASUM_INLINE void combine_vectors(const space_ref& space, const rule_ref& rule, vector_list vectors,
                                   std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments,
                                   const sums_table* sums) {
  combine_segments(space, rule, vectors, leaf_counts, out, segments, unobserved, true, sums);
}

ADASUM_INLINE report combine_with_report(const space_ref& space, const rule_ref& rule, std::vector<const void*> vectors,
                                         std::byte* out, segments_view segments, const basic_options<true>& choices,
                                         const sums_table* sums) {
  const bool measure = rule.needs_gram() || choices.measure == measuring::always;
  report_writer found(vectors.size(), segments.size(), rule.name(), {});
  found.set_measured(measure);
  local_participants participants(space, vectors, segments);
  if (choices.nonfinite != nonfinite_policy::propagate)
    participants.decide(choices.nonfinite == nonfinite_policy::raise, found);
  const auto fallbacks = rule.fallbacks();
  const auto observe = [&](std::size_t k, const segment_outcome& outcome) {
    constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < vectors.size(); ++i)
      found.row(i)[k] = {measure ? outcome.norms[i] : unknown, outcome.weights[i]};
    found.result_norms()[k] = measure ? outcome.result_norm : unknown;
    if (outcome.recombined) found.count_recombined_segment();
  };
  combine_segments(space, rule, vectors, participants.leaf_counts(), out, segments, observe, measure, sums);
  found.set_fallbacks(rule.fallbacks() - fallbacks);
  participants.finish(found);
  return std::move(found).release();
}

}  // namespace adasum::detail
#endif
