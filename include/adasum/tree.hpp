// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>

#include "combine.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// The adaptive sum of any number of gradients along the tree of tree_order.hpp, segment by segment, in two passes over
/// them: combine() with rules::adasum, and its report. Segments may follow; without them the whole gradient is one.
/// Returns when out is complete. Errors as in combine().
template <class Space, class Gradients, class Out, class... Segments>
report adasum_tree(const Space& space, Gradients&& gradients, Out&& out, const Segments&... segments) {
  if constexpr (detail::is_local_call<detail::only_segments, Space, Gradients, Out, Segments...>()) {
    const auto target = detail::span_of(out);
    const std::array<std::size_t, 2> whole{0, target.size()};
    return detail::combine_gradients<element_t<Out>>("adasum::adasum_tree", space, rules::adasum{}, gradients, target,
                                                     detail::segments_or(segments_view{whole}, segments...),
                                                     basic_options<true>{});
  } else {
    return {};
  }
}

/// Enqueues the adaptive sum of any number of gradients on the stream of the space (cuda_space) and returns at once;
/// the host waits for nothing, so there is no report. Weights are computed on the device, and exec/cuda/weigh.hpp says
/// what differs in extreme cases. Otherwise as adasum_tree.
template <class Space, class Gradients, class Out, class... Segments>
void enqueue_adasum_tree(const Space& space, Gradients&& gradients, Out&& out, const Segments&... segments) {
  if constexpr (detail::is_local_call<detail::only_segments, Space, Gradients, Out, Segments...>())
    if constexpr (detail::is_stream_ordered_argument<Space, element_t<Out>>()) {
      using T = element_t<Out>;
      const auto target = detail::span_of(out);
      const std::array<std::size_t, 2> offsets{0, target.size()};
      const auto cut = detail::segments_or(segments_view{offsets}, segments...);
      const auto inputs = detail::inputs_of<T>(gradients);
      detail::require_combinable<T>(space, inputs, target, cut, "adasum::enqueue_adasum_tree");
      const auto vectors = detail::addresses_of<T>(inputs);
      space.enqueue_combine(rules::adasum{}, whole(cut), std::span<const T* const>(vectors), target.data());
    }
}

}  // namespace adasum
