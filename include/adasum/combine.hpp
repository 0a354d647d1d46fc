// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/input_checks.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "detail/arguments.hpp"
#include "detail/gradient_arguments.hpp"
#include "detail/numerics/combination.hpp"
#include "detail/references/rule_ref.hpp"
#include "detail/references/space_ref.hpp"
#include "detail/references/sums_table.hpp"
#include "rules/adasum.hpp"

namespace adasum {
namespace detail {

template <scalar T, gradient_list Gradients>
std::vector<std::span<const T>> inputs_of(Gradients&& gradients) {
  std::vector<std::span<const T>> inputs;
  for (auto&& gradient : gradients) inputs.push_back(const_span_of(gradient));
  return inputs;
}

/// combine() for the call that is named in messages.
template <scalar T, class Space, class Rule, gradient_list Gradients, bool Checked>
report combine_gradients(const char* call, const Space& space, Rule&& rule, Gradients&& gradients, std::span<T> out,
                         segments_view segments, const basic_options<Checked>& choices) {
  const auto inputs = inputs_of<T>(gradients);
  require_combinable<T>(space, inputs, out, segments, call);
  std::vector<const void*> vectors;
  for (const auto& input : inputs) vectors.push_back(input.data());
  // A rule that was given as a constant, or as a temporary, is used as a copy.
  using rule_type = std::remove_cvref_t<Rule>;
  std::conditional_t<std::is_const_v<std::remove_reference_t<Rule>>, rule_type, rule_type&> used = rule;
  return combine_with_report(ref_to_space<T>(space), used, std::move(vectors), reinterpret_cast<std::byte*>(out.data()),
                             segments, options_of_plan(choices), sums_if_any<T, Space>());
}

/// Whether the data and the other arguments of a local combination are what they must be; if not, the compiler says why.
template <taken_arguments Taken, class Space, class Gradients, class Out, class... As>
consteval bool is_local_call() {
  if constexpr (is_gradient_list_argument<Gradients>())
    if constexpr (is_output_argument<Out>())
      if constexpr (have_elements_of<element_t<Out>, std::ranges::range_reference_t<Gradients>>())
        if constexpr (are_arguments<Taken, As...>()) return is_space_argument<Space, element_t<Out>>();
  return false;
}

/// A local combination, by the call that is named in messages, with the arguments that follow its data.
template <taken_arguments Taken, class Space, class Gradients, class Out, class... As>
report combine_here(const char* call, const Space& space, Gradients& gradients, Out& out, As&... as) {
  if constexpr (is_local_call<Taken, Space, Gradients, Out, As...>()) {
    const auto target = span_of(out);
    const std::array<std::size_t, 2> whole{0, target.size()};
    rules::adasum adaptive;
    return combine_gradients<element_t<Out>>(call, space, argument_or<argument::rule>(adaptive, as...), gradients,
                                             target, segments_or(segments_view{whole}, as...),
                                             options_among(call, as...));
  } else {
    return {};
  }
}

}  // namespace detail

/// The combination of any number of gradients of this process under any rule, segment by segment:
///
///     out = Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ
///
/// The call makes two passes over the gradients, or three over many long gradients under a rule that is applied along the
/// tree (detail/numerics/combine_in_groups.hpp). `out` may be one of the gradients. If inner products are measured, Inf or NaN
/// in a segment of any gradient makes that whole segment of `out` NaN, and the report names it; options::nonfinite can choose
/// otherwise. A segment in which inner products lose too much (by cancellation, or because squares leave the range of double)
/// is combined vector by vector. It returns when `out` is complete.
///
/// These may follow the data, in any order and each at most once: segments (by default, the whole gradient is one
/// segment), a rule (by default rules::adasum; a rule with state is updated if it is given as an lvalue) and options.
///
///     adasum::combine(space, gradients, out, rules::mean{}, segments, {.nonfinite = nonfinite_policy::exclude});
///
/// @throws bad_input        there is no gradient, lengths differ, the segments do not add up to the length, or the output
///                          overlaps an input in part; nothing has changed then
/// @throws nonfinite_error  a gradient holds Inf or NaN, under nonfinite_policy::raise; nothing has changed then
template <class Space, class Gradients, class Out, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
report combine(const Space& space, Gradients&& gradients, Out&& out, A&& a = {}, B&& b = {}, C&& c = {}, D&& d = {}) {
  constexpr detail::taken_arguments taken{.schedule = false};
  return detail::combine_here<taken>("adasum::combine", space, gradients, out, a, b, c, d);
}

}  // namespace adasum
