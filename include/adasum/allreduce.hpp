// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/report.hpp"
#include "detail/arguments.hpp"
#include "detail/collective/destination.hpp"
#include "detail/collective/run_once.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"

namespace adasum {
namespace detail {

/// A single call with the arguments that follow its data: the combination under the rule that is among them, or else
/// under rules::adasum. A rule with state is updated where it is not const.
template <class Space, class Comm, class Gradient, class... As>
report combine_once(const char* call, const Space& space, const Comm& comm, Gradient& gradient, const destination& to,
                    As&... as) {
  const auto elements = span_of(gradient);
  const std::size_t whole[] = {0, elements.size()};
  rules::adasum adaptive;
  const schedules::automatic usual;
  auto& rule = argument_or<argument::rule>(adaptive, as...);
  auto given = arguments_of<element_t<Gradient>>(
      call, space, comm, std::as_const(rule), argument_or<argument::schedule>(usual, as...),
      segments_or(segments_view{whole}, as...), options_of_plan(options_among(call, as...)));
  given.to = to;
  given.mine = find_argument<shard>(as...);
  plan_ptr made;
  report found = run_once(given, reinterpret_cast<std::byte*>(elements.data()), elements.size(), made);
  using rule_type = std::remove_reference_t<decltype(rule)>;
  if constexpr (!std::is_const_v<rule_type> && std::is_copy_assignable_v<rule_type> && !std::is_empty_v<rule_type>)
    if (made) rule = *static_cast<const rule_type*>(made->rule());
  return found;
}

/// Whether the data and the other arguments of a call among ranks are what they must be; if not, the compiler says why.
template <taken_arguments Taken, class Space, class Comm, class Gradient, class... As>
consteval bool is_collective_call() {
  if constexpr (is_output_argument<Gradient>())
    if constexpr (are_arguments<Taken, As...>())
      if constexpr (is_space_argument<Space, element_t<Gradient>>()) return is_communicator_argument<Comm, Space>();
  return false;
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
/// With a shard, each gradient is split over several ranks, and i runs over the replicas (core/parts.hpp). Each rank
/// gets its shard of the result, gᵢ·gⱼ is added over the shards, and the report is about the replicas' whole gradients.
/// All ranks that have the same shard get the same bits. Ranks that have different shards may give different lengths.
/// Such a call sends messages, and keeps no plan.
///
///     adasum::combine_allreduce(space, comm, gradient, rules::mean{}, segments, {.wire = wire_format::bfloat16});
///
/// The first call with such arguments makes a plan, which the communicator keeps (options::keep_plan). Later calls that
/// differ only in the numbers of the gradient run this plan. They cost what running the plan costs, and ⌈log₂P⌉ exchanges of
/// one short message, by which the ranks find out if one of them makes another call. The communicator keeps the plans of the
/// last 64 different calls, as long as their gradients together have at most 256 MiB or, if that is more, four times the size
/// of the longest (core/communicator_state.hpp). Each plan holds memory of about one or two gradients. Plans are not kept if
/// the rule has data members, if the schedule is schedules::hierarchical, if the gradient lies in memory of a device, on
/// kokkos_space, or if the communicator has no state(). Then each call makes its own plan, for which schedules::automatic
/// chooses messages. It throws what allreduce_plan::operator() throws, and
/// @throws bad_input  shards that do not fit together: two ranks have the same shard of the same replica, a shard is missing,
///                    the same shard of two replicas has different lengths or boundaries, or replicated segments differ; on
///                    all ranks, and nothing has changed
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options, class E = detail::unnamed_options>
report combine_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {}, C&& c = {},
                         D&& d = {}, E&& e = {}) {
  if constexpr (detail::is_collective_call<detail::taken_arguments{.shard = true}, Space, Comm, Gradient, A, B, C, D,
                                           E>()) {
    return detail::combine_once("adasum::combine_allreduce", space, comm, gradient, {}, a, b, c, d, e);
  } else {
    return {};
  }
}

/// The adaptive sum of all ranks' gradients, in place, segment by segment: for two ranks with the gradients a and b
///
///     gradient ← (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b
///
/// and for more ranks along the tree (see combine_allreduce). The gradients are contiguous arrays, of the same length and
/// element type on all ranks. Collective: every rank calls it with the same arguments. When the result is there, with
/// the same bits on all ranks, it returns a report. Segments, a schedule, options and a shard may follow, in any order
/// and each at most once.
///
/// It does what combine_allreduce does with rules::adasum; see there for when a plan is kept and what is thrown.
/// Source: see rules::adasum.
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
report adasum_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {}, C&& c = {},
                        D&& d = {}) {
  if constexpr (detail::is_collective_call<detail::taken_arguments{.rule = false, .shard = true}, Space, Comm, Gradient,
                                           A, B, C, D>()) {
    return detail::combine_once("adasum::adasum_allreduce", space, comm, gradient, {}, a, b, c, d);
  } else {
    return {};
  }
}

}  // namespace adasum
