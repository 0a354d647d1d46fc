// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>

#include "combine.hpp"
#include "core/segments.hpp"
#include "detail/local/combination.hpp"
#include "detail/references/space_ref.hpp"
#include "rules/adasum.hpp"

namespace adasum {
namespace detail {

/// Whether these are two gradients, an output, and segments or nothing; if not, the compiler says why.
template <class Space, class A, class B, class Out, class... Segments>
consteval bool is_pair_call() {
  if constexpr (is_gradient_argument<A>() && is_gradient_argument<B>() && is_output_argument<Out>())
    if constexpr (have_elements_of<element_t<Out>, A, B>())
      if constexpr (are_arguments<only_segments, Segments...>()) return is_space_argument<Space, element_t<Out>>();
  return false;
}

/// The addresses of both gradients, once everything about them has been checked. @throws bad_input
template <class Space, class A, class B, class Out>
std::array<const element_t<Out>*, 2> vectors_of_pair(const Space& space, A& a, B& b, Out& out, segments_view segments,
                                                     const char* call) {
  using T = element_t<Out>;
  const std::array inputs{const_span_of(a), const_span_of(b)};
  require_combinable<T>(space, inputs, span_of(out), segments, call);
  return {inputs[0].data(), inputs[1].data()};
}

}  // namespace detail

/// The adaptive sum of two gradients, segment by segment:
///
///     out = (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b         (rules::adasum)
///
/// a, b and `out` are contiguous arrays of the same length and element type; `out` may be a or b. Segments may follow;
/// without them, the whole gradient is one segment. Inf or NaN in a segment of a or b makes that whole segment of `out` NaN.
/// The call allocates nothing, except where the squares of double elements leave the range of double. It returns when `out`
/// is complete. Source: see rules::adasum.
/// @throws bad_input  lengths differ, the segments do not add up to the length, or the output overlaps an input in part;
///                    nothing has changed then
template <class Space, class A, class B, class Out, class... Segments>
void adasum_pair(const Space& space, A&& a, B&& b, Out&& out, const Segments&... segments) {
  if constexpr (detail::is_pair_call<Space, A, B, Out, Segments...>()) {
    const auto target = detail::span_of(out);
    const std::array<std::size_t, 2> whole{0, target.size()};
    const auto cut = detail::segments_or(segments_view{whole}, segments...);
    const auto vectors = detail::vectors_of_pair(space, a, b, out, cut, "adasum::adasum_pair");
    constexpr std::array<std::size_t, 2> leaves{1, 1};
    rules::adasum rule;
    const std::array<const void*, 2> addresses{vectors[0], vectors[1]};
    detail::combine_vectors(detail::ref_to_space<element_t<Out>>(space), rule, addresses, leaves,
                             reinterpret_cast<std::byte*>(target.data()), cut);
  }
}

/// Enqueues the adaptive sum of two gradients on the stream of the space (cuda_space) and returns at once; the host waits for
/// nothing. Weights are computed on the device; exec/cuda/weigh.hpp says what differs in extreme cases. Everything else is as
/// in adasum_pair.
template <class Space, class A, class B, class Out, class... Segments>
void enqueue_adasum_pair(const Space& space, A&& a, B&& b, Out&& out, const Segments&... segments) {
  if constexpr (detail::is_pair_call<Space, A, B, Out, Segments...>())
    if constexpr (detail::is_stream_ordered_argument<Space, element_t<Out>>()) {
      const auto target = detail::span_of(out);
      const std::array<std::size_t, 2> offsets{0, target.size()};
      const auto cut = detail::segments_or(segments_view{offsets}, segments...);
      const auto vectors = detail::vectors_of_pair(space, a, b, out, cut, "adasum::enqueue_adasum_pair");
      space.enqueue_combine(rules::adasum{}, whole(cut), std::span<const element_t<Out>* const>(vectors),
                            target.data());
    }
}

}  // namespace adasum
