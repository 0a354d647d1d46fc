// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "combine.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// The adaptive sum of any number of gradients along the tree of tree_order.hpp, segment by segment, in two passes over
/// them: combine() with rules::adasum.
template <class Space, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
report adasum_tree(const Space& space, Gradients&& gradients, Out&& out, segments_view segments) {
  return combine(space, rules::adasum{}, gradients, out, segments);
}

/// The same with all elements in one segment.
template <class Space, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
report adasum_tree(const Space& space, Gradients&& gradients, Out&& out) {
  return combine(space, rules::adasum{}, gradients, out);
}

}  // namespace adasum
