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

#if !defined(ADASUM_COMPILED)
#include "combination_definitions.hpp"
#endif
