// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>

#include "allreduce.hpp"
#include "core/parts.hpp"
#include "detail/arguments.hpp"
#include "plan.hpp"
#include "schedules/partition.hpp"

namespace adasum {

/// A reduction whose result is dealt out among the ranks, set up once and run many times: made by plan_reduce_scatter.
/// Everything but where the result lies is as in allreduce_plan. In place: after a run, the elements part() of the gradient
/// are those of the result, and the others are unspecified. The same holds for buffer().
///
/// Under the same schedule, a part has the same bits as these elements have after an allreduce.
template <scalar T, class Space = serial_space, class Comm = mpi_communicator, class Rule = rules::adasum,
          class Schedule = schedules::automatic>
class reduce_scatter_plan : allreduce_plan<T, Space, Comm, Rule, Schedule> {
  using base = allreduce_plan<T, Space, Comm, Rule, Schedule>;

 public:
  /// Empty.
  reduce_scatter_plan() : base(true) {}

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

  /// Where in the gradient this rank's part of the result lies.
  index_range part() const { return base::wanted("part"); }

  /// @cond internal
  using base::base;  // what plan_reduce_scatter makes
  /// @endcond
};

/// The combination of all ranks' gradients under any rule; each rank gets its part of it:
///
///     gradient[part of rank r] ← (Σᵢ cᵢ gᵢ)[part of rank r],   c = rule(G),   G(i, j) = gᵢ·gⱼ   on rank r
///
/// In place: the result lies where the part lies in the whole gradient; the rest of the gradient is then unspecified. This is
/// combine_allreduce, except that the result is not sent to all ranks: by halving and all_to_all, about half as many bytes
/// are sent. Under the same schedule, each part has the same bits, and the report is the same: about the whole result. Collective:
/// every rank calls it with the same arguments. It returns when this rank's part is there.
///
/// These may follow the gradient, in any order and each at most once: parts (by default as equal as possible:
/// part_of_rank), segments (which may extend over several parts), a rule, a schedule and options, as for
/// combine_allreduce.
///
///     adasum::combine_reduce_scatter(space, comm, gradient, rules::mean{}, adasum::parts{1000, 500, 0, 1500}, segments);
///
/// It throws what combine_allreduce throws, and
/// @throws bad_input  the number of parts is not that of the ranks, or the parts do not add up to the gradient; the other
///                    ranks get an agreement_error that says so (with options::check_agreement) or a communication_error
///                    (without it)
/// @throws agreement_error  the ranks' parts differ
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options, class E = detail::unnamed_options>
report combine_reduce_scatter(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {},
                              C&& c = {}, D&& d = {}, E&& e = {}) {
  constexpr detail::taken_arguments taken{.parts = true};
  return detail::combine_once<taken>("adasum::combine_reduce_scatter", space, comm, gradient, a, b, c, d, e);
}

/// combine_reduce_scatter with rules::adasum. Parts, segments, a schedule and options may follow, in any order.
template <class Space, class Comm, class Gradient, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
report adasum_reduce_scatter(const Space& space, const Comm& comm, Gradient&& gradient, A&& a = {}, B&& b = {},
                             C&& c = {}, D&& d = {}) {
  constexpr detail::taken_arguments taken{.rule = false, .parts = true};
  return detail::combine_once<taken>("adasum::adasum_reduce_scatter", space, comm, gradient, a, b, c, d);
}

/// A plan for combine_reduce_scatter, of gradients of T that are cut into these segments, or of this length. Collective, and
/// otherwise like plan_allreduce. These may follow the segments, in any order and each at most once: parts, a rule, a
/// schedule, options.
///
///     auto plan = adasum::plan_reduce_scatter<float>(exec, comm, segments, adasum::parts(lengths));
///     plan(gradient);
///     use(std::span(gradient).subspan(plan.part().begin, plan.part().size()));
///
/// It throws what plan_allreduce throws and, for parts, what combine_reduce_scatter throws.
/// @return a reduce_scatter_plan
template <scalar T, class Space, class Comm, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
auto plan_reduce_scatter(const Space& space, const Comm& comm, const detail::segments_or_length& segments, A&& a = {},
                         B&& b = {}, C&& c = {}, D&& d = {}) {
  constexpr detail::taken_arguments taken{.segments = false, .parts = true};
  return detail::plan_for<T, reduce_scatter_plan, taken>("adasum::plan_reduce_scatter", space, comm, segments, a, b, c,
                                                         d);
}

/// The part of a rank, if no parts are given: `length` elements are divided into consecutive parts of `length / ranks`,
/// rounded down or up, so that no two parts differ by more than one element.
inline index_range part_of_rank(std::size_t length, int ranks, int rank) {
  return detail::part_of({0, length}, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
}

}  // namespace adasum
