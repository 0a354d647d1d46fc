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
void combine_vectors(const space_ref& space, const rule_ref& rule, vector_list vectors,
                     std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments);

/// The same of n gradients, with what is to be said of them.
/// @param sums  how the space keeps sums in double; null if it does not
/// @throws nonfinite_error  as combine()
report combine_with_report(const space_ref& space, const rule_ref& rule, std::vector<const void*> vectors,
                           std::byte* out, segments_view segments, const basic_options<true>& choices,
                           const sums_table* sums);

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS
#include <limits>
#include <utility>

#include "../../core/report_writer.hpp"
#include "combine_segments.hpp"
#include "participants.hpp"

namespace adasum::detail {

ADASUM_INLINE void combine_vectors(const space_ref& space, const rule_ref& rule, vector_list vectors,
                                   std::span<const std::size_t> leaf_counts, std::byte* out, segments_view segments) {
  combine_segments(space, rule, vectors, leaf_counts, out, segments, unobserved);
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
