// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "combine.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// The adaptive sum of any number of gradients along the tree of tree_order.hpp, segment by segment, in two passes over
/// them: combine() with rules::adasum, and its report.
///
/// On a stream_ordered_space (cuda_space) it is enqueued and returns at once, so there is no report: combine() waits
/// for one. exec/cuda/weigh.hpp says what differs in extreme cases. Errors as in combine().
template <class Space, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
auto adasum_tree(const Space& space, Gradients&& gradients, Out&& out, segments_view segments) {
  using T = element_t<Out>;
  if constexpr (stream_ordered_space<Space, T, rules::adasum>) {
    const auto inputs = detail::inputs_of<T>(gradients);
    const auto target = detail::span_of(out);
    detail::require_combinable<T>(space, inputs, target, segments, "adasum::adasum_tree");
    const auto vectors = detail::addresses_of<T>(inputs);
    space.combine_async(rules::adasum{}, whole(segments), std::span<const T* const>(vectors), target.data());
  } else {
    return combine(space, rules::adasum{}, gradients, out, segments);
  }
}

/// The same with all elements in one segment.
template <class Space, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
auto adasum_tree(const Space& space, Gradients&& gradients, Out&& out) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(out).size()};
  return adasum_tree(space, gradients, out, segments_view{offsets});
}

}  // namespace adasum
