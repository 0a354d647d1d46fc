// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

#include "plan.hpp"
#include "stream_plan.hpp"

namespace adasum {
namespace detail {

/// A schedule for a plan that runs once: making shared memory takes longer than messages save.
template <schedule Schedule>
Schedule for_one_run(Schedule order) {
  if constexpr (std::is_same_v<Schedule, schedules::automatic>) order.in_place = false;
  return order;
}

}  // namespace detail

/// The combination of all ranks' gradients under any rule, in place, segment by segment:
///
///     gradient ← Σᵢ cᵢ gᵢ,   c = rule(G),   G(i, j) = gᵢ·gⱼ,   gᵢ the gradient of rank i
///
/// A pairwise rule combines along the tree of tree_order.hpp, whatever the schedule; all ranks end bitwise identical.
/// Collective: every rank calls it with the same rule, segments, schedule and options. Returns when the result is
/// there. Sets up buffers and partners each time; plan_allreduce does it once, and can work in memory that the ranks
/// share. Errors as in allreduce_plan::operator().
template <class Space, class Comm, rule Rule, mutable_gradient Gradient, schedule Schedule = schedules::automatic,
          bool Checked = options::checked_by_default>
  requires execution_space<Space, element_t<Gradient>> && communicator_for<Comm, Space>
report combine_allreduce(const Space& space, const Comm& comm, const Rule& rule, Gradient&& gradient,
                         segments_view segments, const Schedule& order = {},
                         const basic_options<Checked>& choices = {}) {
  using T = element_t<Gradient>;
  const auto elements = detail::span_of(gradient);
  try {
    detail::require_segments_match(segments, elements.size(), "adasum::combine_allreduce");
  } catch (const bad_input& problem) {
    // The others go by the segments, most likely; where these are not even in order, by the length.
    const std::array<std::size_t, 2> offsets{0, elements.size()};
    const auto usable = detail::are_boundaries(segments) ? segments : segments_view{offsets};
    plan_allreduce<T>(space, comm, usable, rule, detail::for_one_run(order), choices).refuse(problem.what());
  }
  return plan_allreduce<T>(space, comm, segments, rule, detail::for_one_run(order), choices)(elements);
}

/// The same with all elements in one segment.
template <class Space, class Comm, rule Rule, mutable_gradient Gradient>
  requires execution_space<Space, element_t<Gradient>> && communicator_for<Comm, Space>
report combine_allreduce(const Space& space, const Comm& comm, const Rule& rule, Gradient&& gradient) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(gradient).size()};
  return combine_allreduce(space, comm, rule, gradient, segments_view{offsets});
}

/// The adaptive sum of all ranks' gradients, in place: combine_allreduce with rules::adasum, and its report.
///
/// Where the space and the communicator both work in the order of a stream (cuda_space with nccl_communicator) it is
/// enqueued and returns nothing: plan_allreduce_async, made, enqueued and thrown away. Keep the space from call to
/// call, since it holds what would else be made each time; a plan that is kept too allocates nothing at all.
/// combine_allreduce waits for a report there.
template <class Space, class Comm, mutable_gradient Gradient, schedule Schedule = schedules::automatic,
          bool Checked = options::checked_by_default>
  requires execution_space<Space, element_t<Gradient>> && communicator_for<Comm, Space>
auto adasum_allreduce(const Space& space, const Comm& comm, Gradient&& gradient, segments_view segments,
                      const Schedule& order = {}, const basic_options<Checked>& choices = {}) {
  using T = element_t<Gradient>;
  if constexpr (stream_ordered_space<Space, T, rules::adasum> && stream_ordered_communicator<Comm, Space>) {
    // The plan finds a wrong length, and tells the others where ranks compare what they are about to do.
    const std::array<std::size_t, 2> offsets{0, detail::span_of(gradient).size()};
    const bool usable = detail::are_boundaries(segments);
    plan_allreduce_async<T>(space, comm, usable ? segments : segments_view{offsets}, rules::adasum{}, order, choices)
        .run(gradient,
             usable ? "" : "adasum::adasum_allreduce: the boundaries of the segments must begin at 0 and not decrease");
  } else {
    return combine_allreduce(space, comm, rules::adasum{}, gradient, segments, order, choices);
  }
}

/// The same with all elements in one segment.
template <class Space, class Comm, mutable_gradient Gradient>
  requires execution_space<Space, element_t<Gradient>> && communicator_for<Comm, Space>
auto adasum_allreduce(const Space& space, const Comm& comm, Gradient&& gradient) {
  const std::array<std::size_t, 2> offsets{0, detail::span_of(gradient).size()};
  return adasum_allreduce(space, comm, gradient, segments_view{offsets});
}

}  // namespace adasum
