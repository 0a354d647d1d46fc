// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/gradient.hpp"
#include "core/input_checks.hpp"
#include "core/segments.hpp"
#include "core/space_members.hpp"
#include "detail/gradient_arguments.hpp"
#include "detail/numerics/combine_pair.hpp"
#include "rules/adasum.hpp"

namespace adasum {
namespace detail {

/// The segments that may follow the data, or the given ones.
inline segments_view segments_of_pair(segments_view otherwise) { return otherwise; }
inline segments_view segments_of_pair(segments_view, segments_view given) { return given; }

/// Whether these are two gradients, an output, and segments or nothing; if not, the compiler says why.
template <class Space, class A, class B, class Out, class... Segments>
consteval bool is_pair_call() {
  constexpr bool are_segments = (std::is_convertible_v<const Segments&, segments_view> && ...);
  static_assert(are_segments,
                "write adasum::segments(lengths), or combine for another rule: only segments may follow the data");
  static_assert(sizeof...(Segments) <= 1, "adasum: the segments are given twice");
  if constexpr (are_segments && sizeof...(Segments) <= 1)
    if constexpr (is_gradient_argument<A>() && is_gradient_argument<B>() && is_output_argument<Out>())
      if constexpr (have_elements_of<element_t<Out>, A, B>()) return is_space_argument<Space, element_t<Out>>();
  return false;
}

/// What require_combinable refuses, without saying what it is.
inline bool are_combinable(const void* input, std::size_t length, const void* out, std::size_t out_length,
                           std::size_t element_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(input), out_begin = reinterpret_cast<std::uintptr_t>(out);
  if (length != out_length) return false;
  if (length == 0 || input == out) return length == 0 || input != nullptr;
  const std::size_t bytes = length * element_bytes;
  return input != nullptr && out != nullptr && (begin + bytes <= out_begin || out_begin + bytes <= begin);
}

/// The addresses of both gradients, once everything about them has been checked. @throws bad_input
template <class Space, class A, class B, class Out>
std::array<const element_t<Out>*, 2> vectors_of_pair(const Space& space, A& a, B& b, Out& out, segments_view segments,
                                                     const char* call) {
  using T = element_t<Out>;
  const std::array inputs{const_span_of(a), const_span_of(b)};
  const auto target = span_of(out);
  bool good = are_boundaries(segments) && segments.all().end == target.size();
  for (const auto& input : inputs)
    good = good && are_combinable(input.data(), input.size(), target.data(), target.size(), sizeof(T));
  if (!good || tells_what_it_reaches<Space, T>)
    require_combinable<T>(space, std::span<const std::span<const T>>(inputs), target, segments, call);
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
    using T = element_t<Out>;
    const auto target = detail::span_of(out);
    const std::size_t whole[] = {0, target.size()};
    const auto cut = detail::segments_of_pair(segments_view{whole}, segments...);
    const auto vectors = detail::vectors_of_pair(space, a, b, out, cut, "adasum::adasum_pair");
    detail::pair_combination<T, Space>(space, vectors[0], vectors[1], target.data(), cut).run();
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
      const auto cut = detail::segments_of_pair(segments_view{offsets}, segments...);
      const auto vectors = detail::vectors_of_pair(space, a, b, out, cut, "adasum::enqueue_adasum_pair");
      space.enqueue_combine(rules::adasum{}, whole(cut), std::span<const element_t<Out>* const>(vectors),
                            target.data());
    }
}

}  // namespace adasum
