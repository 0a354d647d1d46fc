// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/combine_window.hpp"
#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"

namespace adasum {
namespace detail {

/// Inputs of one length, segments that add up to it, an output that is apart from every input or is one of them.
template <scalar T>
void require_combinable(std::span<const std::span<const T>> inputs, std::span<T> out, segments_view segments,
                        const char* call) {
  if (inputs.empty()) throw bad_input(std::string(call) + ": there is no gradient to combine");
  require_not_null(std::span<const T>(out), "the output", call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto which = "gradient " + std::to_string(i);
    if (inputs[i].size() != out.size())
      throw bad_input(std::string(call) + ": " + which + " has " + std::to_string(inputs[i].size()) +
                      " elements, the output has " + std::to_string(out.size()));
    require_not_null(inputs[i], which, call);
    require_same_or_apart(inputs[i], std::span<const T>(out), which, call);
  }
  require_segments_match(segments, out.size(), call);
}

/// How many segments one round takes.
template <class Space>
std::size_t segments_per_round(std::size_t segments) {
  if constexpr (requires { Space::segment_batch; })
    return std::min<std::size_t>(segments, Space::segment_batch);
  else
    return segments;
}

/// measure → weigh → mix of n vectors of this process, round by round.
/// @param measure  whether to measure; false only for a rule that needs no Gram matrix
template <scalar T, execution_space<T> Space, rule Rule, class Observer>
void combine_segments(const Space& space, Rule& rule, std::span<const T* const> vectors, T* out, segments_view segments,
                      Observer&& observe, bool measure = true) {
  const std::size_t n = vectors.size();
  const std::size_t round = weighs_whole_model(rule) ? segments.size() : segments_per_round<Space>(segments.size());
  // Two vectors, one segment at a time, is the common case and often a short one: no allocation there.
  constexpr std::size_t few = 2;
  const bool small = n <= few && round <= 1;
  std::array<double, 2 * packed_size(few) + 2 * few> on_stack;
  std::vector<double> on_heap(small ? 0 : (round + 1) * (packed_size(n) + n));
  const auto memory = small ? std::span<double>(on_stack) : std::span(on_heap);
  std::array<std::size_t, few> few_leaves;
  std::vector<std::size_t> many_leaves(n <= few ? 0 : n);
  const auto leaves = n <= few ? std::span(few_leaves).first(n) : std::span(many_leaves);
  std::ranges::fill(leaves, std::size_t{1});
  weigh_scratch scratch(n == 2 ? 0 : n);

  for (std::size_t first = 0; first < segments.size(); first += round) {
    const std::size_t count = std::min(round, segments.size() - first);
    const auto part = segments.part(first, count);
    const slice window{part, part.all(), 0};
    auto rest = memory;
    const auto take = [&](std::size_t size) { return std::exchange(rest, rest.subspan(size)).first(size); };
    const round_memory arrays{take(count * packed_size(n)), take(count * n), take(n), take(packed_size(n)), scratch};
    if (measure) {
      space.template measure<T>(window, vectors, arrays.gram.data());
      space.fence();
    } else {
      std::ranges::fill(arrays.gram, 0.0);
    }
    const auto alone = [](std::span<double>) {};
    if constexpr (std::is_same_v<std::remove_cvref_t<Observer>, no_observer>)
      weigh_and_mix<T>(space, rule, window, vectors, leaves, first, out, arrays, alone, observe);
    else
      weigh_and_mix<T>(space, rule, window, vectors, leaves, first, out, arrays, alone,
                       [&](std::size_t k, const segment_outcome& outcome) { observe(first + k, outcome); });
  }
  space.fence();
}

}  // namespace detail

/// The combination of any number of gradients of this process under any rule, segment by segment:
///
///     out = Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ
///
/// in two passes over the gradients. `out` may be one of them. Inf or NaN in a segment of any gradient makes that whole
/// segment of out NaN (where the rule is measured), and the report names it. A segment in which inner products lose too
/// much (cancellation, squares outside the range of double) is combined vector by vector. Returns when out is complete.
/// @throws bad_input  no gradient, unequal lengths, segments that do not add up to the length, an output that overlaps
///                    an input in part; before anything changes
template <class Space, rule Rule, gradient_list Gradients, mutable_gradient Out, bool Checked = false>
  requires execution_space<Space, element_t<Out>>
report combine(const Space& space, Rule rule, Gradients&& gradients, Out&& out, segments_view segments,
               const basic_options<Checked>& choices = {}) {
  using T = element_t<Out>;
  static_assert(std::is_same_v<element_t<std::ranges::range_reference_t<Gradients>>, T>,
                "combine: the gradients and the output must have one element type");
  std::vector<std::span<const T>> inputs;
  std::vector<const T*> vectors;
  for (auto&& gradient : gradients) {
    inputs.push_back(detail::const_span_of(gradient));
    vectors.push_back(inputs.back().data());
  }
  const auto target = detail::span_of(out);
  detail::require_combinable<T>(inputs, target, segments, "adasum::combine");

  const bool measure = needs_gram<Rule> || choices.measure == measuring::always;
  report found(vectors.size(), segments.size(), Rule::name, {});
  found.set_measured(measure);
  detail::combine_segments<T>(
      space, rule, std::span<const T* const>(vectors), target.data(), segments,
      [&](std::size_t k, const detail::segment_outcome& outcome) {
        for (std::size_t i = 0; i < vectors.size(); ++i)
          found.row(i)[k] = {measure ? outcome.norms[i] : std::numeric_limits<double>::quiet_NaN(), outcome.weights[i]};
        found.result_norms()[k] = measure ? outcome.result_norm : std::numeric_limits<double>::quiet_NaN();
        if (outcome.direct) found.count_direct_segment();
      },
      measure);
  return found;
}

/// The same with all elements in one segment.
template <class Space, rule Rule, gradient_list Gradients, mutable_gradient Out>
  requires execution_space<Space, element_t<Out>>
report combine(const Space& space, Rule rule, Gradients&& gradients, Out&& out) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(out).size()};
  return combine(space, rule, gradients, out, segments_view{offsets});
}

}  // namespace adasum
