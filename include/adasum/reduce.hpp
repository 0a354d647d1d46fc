// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include "allreduce.hpp"
#include "detail/arguments.hpp"
#include "detail/collective/destination.hpp"
#include "plan.hpp"

namespace adasum {

/// A reduction whose result goes to one rank, set up once by plan_reduce and run many times. Everything except where the
/// result lies is as in allreduce_plan. In place: after a run, the gradient of the root is the result, and those of the other
/// ranks are unspecified. The same holds for buffer().
template <scalar T, class Space = serial_space, class Comm = mpi_communicator, class Rule = rules::adasum,
          class Schedule = schedules::automatic>
class reduce_plan : allreduce_plan<T, Space, Comm, Rule, Schedule> {
  using base = allreduce_plan<T, Space, Comm, Rule, Schedule>;

 public:
  /// Empty.
  reduce_plan() : base(detail::destination::kind::one_rank) {}

  using base::operator();
  using base::buffer;
  using base::current_rule;
  using base::is_empty;
  using base::is_in_flight;
  using base::last_report;
  using base::length;
  using base::segments;
  using base::space;
  using base::start;
  using base::test;
  using base::wait;

  /// The rank that gets the result.
  int root() const { return base::to("root").root(); }

  /// @cond internal
  using base::base;  // what plan_reduce makes
  /// @endcond
};

/// The combination of all ranks' gradients under any rule, for one rank:
///
///     gradient ← Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ   on rank `root`
///
/// In place on the root, with the same bits as combine_allreduce gives under the same schedule; the gradients of the other
/// ranks are then unspecified. Under all schedules except recursive_doubling, each rank combines a part, as in
/// combine_reduce_scatter, and sends it to the root, so that each rank sends N elements in total. All ranks get the
/// same report as from combine_allreduce. Collective: every rank calls it with the same arguments. On the root it
/// returns when the result is there; on the other ranks, when nobody needs their gradient any more.
///
/// These may follow the root, in any order and each at most once: segments, a rule, a schedule and options, as for
/// combine_allreduce. It throws what combine_allreduce throws, and
/// @throws bad_input        there is no rank `root`; the other ranks get an agreement_error that says so (with
///                          options::check_agreement) or a communication_error (without it)
/// @throws agreement_error  the ranks name different roots
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
report combine_reduce(const Space& space, const Comm& comm, Gradient&& gradient, int root, A&& a = {}, B&& b = {},
                      C&& c = {}, D&& d = {}) {
  if constexpr (detail::is_collective_call<detail::taken_arguments{}, Space, Comm, Gradient, A, B, C, D>()) {
    return detail::combine_once("adasum::combine_reduce", space, comm, gradient, detail::destination::at(root), a, b, c,
                                d);
  } else {
    return {};
  }
}

/// The adaptive sum of all ranks' gradients (adasum_allreduce), for one rank, in place. Collective: every rank calls it with
/// the same arguments. It returns a report: on the root, when the result is there; on the other ranks, when nobody needs
/// their gradient any more. Segments, a schedule and options may follow the root, in any order and each at most once. It does
/// what combine_reduce does with rules::adasum, and throws the same errors.
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options>
report adasum_reduce(const Space& space, const Comm& comm, Gradient&& gradient, int root, A&& a = {}, B&& b = {},
                     C&& c = {}) {
  if constexpr (detail::is_collective_call<detail::taken_arguments{.rule = false}, Space, Comm, Gradient, A, B, C>()) {
    return detail::combine_once("adasum::adasum_reduce", space, comm, gradient, detail::destination::at(root), a, b, c);
  } else {
    return {};
  }
}

/// A plan for combine_reduce, of gradients of T that are cut into these segments, or of this length. Collective, and
/// otherwise like plan_allreduce. These may follow the root, in any order and each at most once: a rule, a schedule,
/// options.
///
///     auto plan = adasum::plan_reduce<float>(exec, comm, segments, root, adasum::rules::mean{});
///
/// It throws what plan_allreduce throws and, for the root, what combine_reduce throws.
/// @return a reduce_plan
template <scalar T, class Space, class Comm, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options>
auto plan_reduce(const Space& space, const Comm& comm, const detail::segments_or_length& segments, int root, A&& a = {},
                 B&& b = {}, C&& c = {}) {
  if constexpr (detail::are_arguments<detail::taken_arguments{.segments = false}, A, B, C>())
    if constexpr (detail::is_space_argument<Space, T>())
      if constexpr (detail::is_communicator_argument<Comm, Space>())
        return detail::plan_for<T, reduce_plan>("adasum::plan_reduce", space, comm, segments,
                                                detail::destination::at(root), a, b, c);
}

}  // namespace adasum
