// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "core/concepts.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "core/segments.hpp"
#include "detail/arguments.hpp"
#include "detail/engine/buckets.hpp"
#include "detail/engine/collective_setup.hpp"
#include "detail/engine/run_once.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"

namespace adasum {

/// Reduces gradients while a backward pass still computes others. Parameters are marked ready one by one, in any order. Their
/// gradients are gathered in buckets, and each bucket is reduced as soon as it is complete, while the computation goes on.
/// plan_bucketed makes one.
///
///     for (layer i = last; …; --i) {
///       compute(i, buckets.gradient(i));
///       buckets.ready(i);
///     }
///     buckets.wait();
///
/// A backward pass ends with the first parameters, so bucket 0 holds the last parameters. Every rank reduces the buckets in
/// this order, one at a time, so that all ranks start the same reductions, whatever the order in which a rank computes. The
/// result of each bucket has the same bits as that of a blocking plan for the bucket's segments.
///
/// Under a rule that weighs the whole model at once (its whole_model() is true), a pass is a single reduction of all
/// gradients, which begins when the last one is ready: its report is about the whole model, a rank that nonfinite_policy
/// leaves out is left out everywhere, and the result has the same bits as that of one blocking plan.
///
/// Communication makes progress in ready(), test() and wait(), on the caller's thread: see allreduce_plan::start.
template <scalar T, execution_space<T> Space>
class bucketed {
 public:
  /// Where a parameter's gradient is, and where the report on it is: the members bucket, segment (the first of its segments in
  /// its report), elements (an index_range of the bucket) and report (which one of those that wait() returns).
  using location = detail::place_in_bucket;

  /// @cond internal
  /// What plan_bucketed makes.
  bucketed(const Space& space, std::span<const segments> parameters, std::size_t bucket_bytes,
           const detail::plan_arguments& given, detail::collective_setup& together)
      : space_(space), buckets_(detail::ref_to_space<T>(space_)) {
    buckets_.set_up(together, parameters, bucket_bytes, given);
  }
  /// @endcond
  /// In the middle of a pass, does what wait() does, except that it writes to no gradient of the caller's.
  ~bucketed() = default;
  bucketed(const bucketed&) = delete;
  bucketed& operator=(const bucketed&) = delete;

  /// Memory for the gradient of parameter i: write it there, then call ready(i). After wait(), the result is there.
  std::span<T> gradient(std::size_t i) {
    auto* const first = reinterpret_cast<T*>(buckets_.gradient(i, "gradient"));
    return {first, buckets_.place_of(i, "gradient").elements.size()};
  }

  /// The gradient of parameter i lies in gradient(i), which belongs to this object until wait() has returned. If its bucket
  /// is now complete, its reduction starts; reductions in flight continue. The call does not wait for other ranks.
  /// @throws bad_input  there is no parameter i, or it is ready already; nothing has happened then
  void ready(std::size_t i) { buckets_.ready(i, nullptr, 0, false); }

  /// The same for a gradient that lies elsewhere. It is copied to gradient(i), and at the end the result is copied back:
  /// it must stay valid until wait() has returned.
  /// @throws bad_input  as above; or it is not as long as the parameter
  template <class Gradient>
  void ready(std::size_t i, Gradient&& callers) {
    if constexpr (detail::is_output_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the buckets were made for another element type");
      const std::span<T> elements = detail::span_of(callers);
      buckets_.ready(i, reinterpret_cast<std::byte*>(elements.data()), elements.size(), true);
    }
  }

  /// Continues as far as is possible without waiting for other ranks. If the communicator cannot post exchanges, it reduces
  /// all buckets that are complete, as allreduce_plan::test does. @return whether all buckets have been reduced
  bool test() { return buckets_.test(); }

  /// Ends the pass: returns when all buckets have been reduced. If one of them fails, the exception is thrown after the
  /// others have been reduced. After a timeout, no bucket waits again: those that are left fail at once, on all ranks.
  /// @return a report for each bucket (location::report); overwritten by the next pass
  /// @throws bad_input  a parameter was not marked ready; its bucket fails on the other ranks, too. With
  ///                    options::check_agreement, all ranks get an agreement_error instead
  /// @throws what allreduce_plan throws; the gradients of that bucket are then unspecified where they lie in gradient(i),
  ///         and the caller's own are as they were
  std::span<const report* const> wait() { return buckets_.wait(); }

  /// How many parameters there are.
  std::size_t parameters() const { return buckets_.parameters(); }
  /// How many buckets they are in.
  std::size_t buckets() const { return buckets_.count(); }
  /// In which bucket, and where in it, the gradient of parameter i is.
  const location& location_of(std::size_t i) const { return buckets_.place_of(i, "location_of"); }

 private:
  Space space_;
  detail::buckets buckets_;
};

/// Makes buckets for parameters of these lengths, or cut into these segments; every rank calls it with the same arguments.
/// These may be followed, in any order and each at most once, by a rule (by default rules::adasum), a schedule (by
/// default schedules::automatic), options. Collective, and waits for all ranks, as plan_allreduce does.
/// @param parameters    the length of each parameter, which is one segment (any range of integers, or lengths in braces);
///                      or a range of segments, one for each parameter
/// @param bucket_bytes  how many bytes of gradients are reduced together, at most, unless one parameter has more: large
///                      enough that latency does not matter, small enough that the last bucket, which nothing hides, is
///                      short
/// @return bucketed, which cannot be moved
/// @throws bad_input  as plan_allreduce does
template <scalar T, class Space, class Comm, class Parameters = segments, class A = detail::unnamed_options,
          class B = detail::unnamed_options, class C = detail::unnamed_options>
auto plan_bucketed(const Space& space, const Comm& comm, const Parameters& parameters, std::size_t bucket_bytes,
                   A&& a = {}, B&& b = {}, C&& c = {}) {
  constexpr detail::taken_arguments taken{.segments = false};
  if constexpr (detail::is_space_argument<Space, T>() && detail::is_communicator_argument<Comm, Space>())
    if constexpr (detail::are_arguments<taken, A, B, C>()) {
      const auto given =
          detail::arguments_among<T, taken>("adasum::plan_bucketed", space, comm, segments_view{}, a, b, c);
      return detail::collective_setup(given.call, given.comm, given.choices.check_agreement)
          .run([&](detail::collective_setup& together) {
            return bucketed<T, Space>(space, detail::segments_of_each(parameters), bucket_bytes, given, together);
          });
    }
}

}  // namespace adasum
