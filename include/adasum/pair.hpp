// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "combine.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// The adaptive sum of two gradients, segment by segment:
///
///     out = (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b         (rules::adasum)
///
/// `out` may be a or b. Inf or NaN in a segment of a or b makes that whole segment of out NaN. Allocates nothing (but
/// for double elements whose squares leave the range of double). Returns when out is complete; on a
/// stream_ordered_space (cuda_space) it is enqueued and returns at once, and exec/cuda/weigh.hpp says what differs in
/// extreme cases.
/// @throws bad_input  unequal lengths, segments that do not add up to the length, an output that overlaps an input in
///                    part; before anything changes
template <class Space, gradient A, gradient B, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
void adasum_pair(const Space& space, A&& a, B&& b, Out&& out, segments_view segments) {
  using T = element_t<Out>;
  static_assert(std::is_same_v<element_t<A>, T> && std::is_same_v<element_t<B>, T>,
                "adasum_pair: both gradients and the output must have one element type");
  constexpr auto call = "adasum::adasum_pair";
  const std::array inputs{detail::const_span_of(a), detail::const_span_of(b)};
  detail::require_combinable<T>(space, inputs, detail::span_of(out), segments, call);
  const std::array<const T*, 2> vectors{inputs[0].data(), inputs[1].data()};
  T* const target = detail::span_of(out).data();
  rules::adasum rule;
  if constexpr (stream_ordered_space<Space, T, rules::adasum>) {
    space.combine_async(rule, whole(segments), std::span<const T* const>(vectors), target);
  } else {
    constexpr std::array<std::size_t, 2> leaves{1, 1};
    detail::combine_segments<T>(space, rule, std::span(vectors), leaves, target, segments, detail::no_observer{});
  }
}

/// The same with all elements in one segment.
template <class Space, gradient A, gradient B, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
void adasum_pair(const Space& space, A&& a, B&& b, Out&& out) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(out).size()};
  adasum_pair(space, a, b, out, segments_view{offsets});
}

}  // namespace adasum
