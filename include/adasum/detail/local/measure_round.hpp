// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <span>

#include "../../core/concepts.hpp"
#include "../../core/optional_members.hpp"

namespace adasum::detail {

/// Of all vectors together.
template <scalar T>
std::size_t bytes_of(std::span<const T* const> vectors, segments_view all) {
  return vectors.size() * all.all().size() * sizeof(T);
}

/// The Gram matrices of one round of `all`, as accurate as the rule needs them.
template <rule Rule, scalar T, execution_space<T> Space>
void measure_round(const Space& space, const slice& window, std::span<const T* const> vectors, double* gram,
                   segments_view all) {
  // Each round is short, but all of them together may be more than the caches hold.
  const std::size_t bytes = bytes_of(vectors, all);
  constexpr bool takes_bytes = requires { space.measure(window, vectors, gram, bytes); };
  if constexpr (takes_bytes && !measures_in_double<Rule, Space, T>)
    space.measure(window, vectors, gram, bytes);
  else
    measure_for<Rule, T>(space, window, vectors, gram);
  space.fence();
}

}  // namespace adasum::detail
