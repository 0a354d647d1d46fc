// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/report.hpp"
#include "detail/arguments.hpp"
#include "detail/engine/run_once.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"

namespace adasum {
namespace detail {

/// Whether the data and the other arguments of a call among ranks are what they must be; if not, the compiler says why.
template <taken_arguments Taken, class Space, class Comm, class Gradient, class... As>
consteval bool is_collective_call() {
  if constexpr (is_output_argument<Gradient>())
    if constexpr (are_arguments<Taken, As...>())
      if constexpr (is_space_argument<Space, element_t<Gradient>>()) return is_communicator_argument<Comm, Space>();
  return false;
}

/// A single call with the arguments that follow its data. A rule with state is updated where it is not const.
template <taken_arguments Taken, class Space, class Comm, class Gradient, class... As>
report combine_once(const char* call, const Space& space, const Comm& comm, Gradient& gradient, As&... as) {
  if constexpr (is_collective_call<Taken, Space, Comm, Gradient, As...>()) {
    const auto elements = span_of(gradient);
    const std::size_t whole[] = {0, elements.size()};
    const auto given = arguments_among<element_t<Gradient>, Taken>(call, space, comm,
                                                                   segments_or(segments_view{whole}, as...), as...);
    plan_ptr made;
    report found = run_once(given, reinterpret_cast<std::byte*>(elements.data()), elements.size(), made);
    auto& rule = argument_or<argument::rule>(usual_rule, as...);
    using rule_type = std::remove_reference_t<decltype(rule)>;
    if constexpr (!std::is_const_v<rule_type> && std::is_copy_assignable_v<rule_type> && !std::is_empty_v<rule_type>)
      if (made) rule = *static_cast<const rule_type*>(made->rule());
    return found;
  } else {
    return {};
  }
}

}  // namespace detail

/// The combination of all ranks' gradients under any rule, in place, segment by segment:
///
///     gradient ← Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ,   gᵢ the gradient of rank i
///
/// A pairwise rule is applied along the tree of tree_order.hpp or, where the schedule follows the nodes, along that of
/// node_groups.hpp. All ranks end with the same bits. Collective: every rank calls it with the same arguments. It returns
/// when the result is there.
///
/// These may follow the gradient, in any order and each at most once: segments (by default, the whole gradient is one
/// segment), a rule (by default rules::adasum; a rule with state is updated if it is given as an lvalue), a schedule (by
/// default schedules::automatic), options and a shard.
///
/// With a shard (core/parts.hpp), i runs over the replicas, and the report is about their whole gradients. All ranks that have
/// the same shard get the same bits; others may give other lengths. Such a call sends messages, and keeps no plan.
///
///     adasum::combine_allreduce(space, comm, gradient, rules::mean{}, segments, {.wire = wire_format::bfloat16});
///
/// The first call with such arguments makes a plan, which the communicator keeps (options::keep_plan, kept_plans), with memory
/// of about one or two gradients. Later calls that differ only in the numbers of the gradient run this plan. They cost what
/// running the plan costs, and the ranks find out if one of them makes another call: where all of them share memory, while
/// they wait for each other anyway; otherwise by ⌈log₂P⌉ exchanges of one short message. Plans are not kept if the rule has
/// data members, if the schedule is schedules::hierarchical, if the gradient lies in memory of a device, on kokkos_space, or
/// if the communicator has no state(). Then each call makes its own plan, for which schedules::automatic chooses messages. It
/// throws what allreduce_plan::operator() throws, and
/// @throws bad_input  shards that do not fit together: two ranks have the same shard of the same replica, a shard is missing,
///                    the same shard of two replicas has different lengths or boundaries, or replicated segments differ; on
///                    all ranks, and nothing has changed
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options, class E = detail::unnamed_options>
report combine_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {}, C&& c = {},
                         D&& d = {}, E&& e = {}) {
  constexpr detail::taken_arguments taken{.shard = true};
  return detail::combine_once<taken>("adasum::combine_allreduce", space, comm, gradient, a, b, c, d, e);
}

/// The adaptive sum of all ranks' gradients, in place, segment by segment: for two ranks with the gradients a and b
///
///     gradient ← (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b
///
/// and for more ranks along the tree. The gradients are contiguous arrays, of the same length and element type on all ranks.
/// Collective: returns when the result is there. It is combine_allreduce with rules::adasum: see there. Segments, a schedule,
/// options and a shard may follow, in any order.
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
report adasum_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {}, C&& c = {},
                        D&& d = {}) {
  constexpr detail::taken_arguments taken{.rule = false, .shard = true};
  return detail::combine_once<taken>("adasum::adasum_allreduce", space, comm, gradient, a, b, c, d);
}

}  // namespace adasum
