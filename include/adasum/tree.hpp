// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "combine.hpp"
#include "core/error.hpp"
#include "core/node_groups.hpp"
#include "core/segments.hpp"
#include "rules/adasum.hpp"

namespace adasum {

/// The adaptive sum of any number of gradients of this process, segment by segment: rules::adasum along the tree of
/// tree_order.hpp, for four gradients ((g₀ ⊕ g₁) ⊕ (g₂ ⊕ g₃)), where
///
///     a ⊕ b = (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b
///
/// The gradients and `out` are contiguous arrays of the same length and element type; `out` may be one of the gradients.
/// It is combine() with rules::adasum. Segments may follow.
template <class Space, class Gradients, class Out, class... Segments>
report adasum_tree(const Space& space, Gradients&& gradients, Out&& out, const Segments&... segments) {
  return detail::combine_here<detail::only_segments>("adasum::adasum_tree", space, gradients, out, segments...);
}

/// The same for the gradients of ranks on several nodes: first along the tree over each node's gradients, in the order of the
/// ranks, and then along the tree over the nodes, in the order of their lowest ranks. This is the tree that
/// schedules::automatic uses where it follows the nodes:
///
///     adasum_tree_by_node(exec, gradients, adasum::node_groups(comm.nodes()), out, segments);
///
/// Until it returns, it keeps one vector for each node.
/// @throws bad_input  there are not as many gradients as ranks; and where adasum_tree throws it
template <class Space, class Gradients, class Out, class... Segments>
void adasum_tree_by_node(const Space& space, Gradients&& gradients, const node_groups& nodes, Out&& out,
                         const Segments&... segments) {
  if constexpr (detail::is_local_call<detail::only_segments, Space, Gradients, Out, Segments...>()) {
    using T = element_t<Out>;
    constexpr auto call = "adasum::adasum_tree_by_node";
    const auto target = detail::span_of(out);
    const std::array<std::size_t, 2> offsets{0, target.size()};
    const auto cut = detail::segments_or(segments_view{offsets}, segments...);
    const auto inputs = detail::inputs_of<T>(gradients);
    if (inputs.size() != nodes.ranks().size())
      throw bad_input({call, ": ", detail::counted(inputs.size(), "gradient"), " for ",
                       detail::counted(nodes.ranks().size(), "rank")});
    detail::require_combinable<T>(space, inputs, target, cut, call);

    const auto combine_to = [&](const auto& some, std::span<T> result) {
      detail::combine_gradients<T>(call, space, rules::adasum{}, some, result, cut, basic_options<true>{});
    };
    auto memory = space.template allocate<T>(nodes.size() * target.size());
    std::vector<std::span<const T>> of_nodes, members;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      members.clear();
      for (const int rank : nodes.ranks(node)) members.push_back(inputs[static_cast<std::size_t>(rank)]);
      const std::span<T> result(memory.data() + node * target.size(), target.size());
      combine_to(members, result);
      of_nodes.push_back(result);
    }
    combine_to(of_nodes, target);
  }
}

/// Enqueues the adaptive sum of any number of gradients on the stream of the space (cuda_space) and returns at once. The host
/// waits for nothing, so there is no report. Weights are computed on the device; exec/cuda/weigh.hpp says what differs in
/// extreme cases. Everything else is as in adasum_tree.
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
      std::vector<const T*> vectors;
      for (const auto& input : inputs) vectors.push_back(input.data());
      space.enqueue_combine(rules::adasum{}, whole(cut), std::span<const T* const>(vectors), target.data());
    }
}

}  // namespace adasum
