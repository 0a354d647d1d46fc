// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>

#include "../../core/optional_members.hpp"
#include "../references/rule_ref.hpp"
#include "../references/space_ref.hpp"

namespace adasum::detail {

/// Of all vectors together.
inline std::size_t bytes_of(const space_ref& space, std::size_t vectors, segments_view all) {
  return vectors * all.all().size() * space.element_size();
}

/// As accurately as the rule needs it.
inline void measure_for(const rule_ref& rule, const space_ref& space, const slice& window, vector_list vectors,
                        double* gram, std::size_t bytes = 0) {
  if (rule.needs_accurate_gram() && space.measures_in_double())
    space.measure_in_double(window, vectors, gram);
  else
    space.measure(window, vectors, gram, bytes);
}

/// The Gram matrices of one round of `all`, as accurate as the rule needs them.
inline void measure_round(const rule_ref& rule, const space_ref& space, const slice& window, vector_list vectors,
                          double* gram, segments_view all) {
  // Each round is short, but all of them together may be more than the caches hold.
  measure_for(rule, space, window, vectors, gram, bytes_of(space, vectors.size(), all));
  space.fence();
}

}  // namespace adasum::detail
