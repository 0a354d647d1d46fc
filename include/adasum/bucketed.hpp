// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/concepts.hpp"
#include "core/deferred_error.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "core/segments.hpp"
#include "detail/arguments.hpp"
#include "detail/collective/agreement.hpp"
#include "detail/collective/call_signature.hpp"
#include "detail/collective/engine_settings.hpp"
#include "detail/collective/held_plan.hpp"
#include "detail/collective/joint_set_up.hpp"
#include "detail/gradient_arguments.hpp"
#include "plan.hpp"
#include "rules/adasum.hpp"
#include "schedule/automatic.hpp"

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
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, schedule Schedule>
class bucketed {
  using plan_type = allreduce_plan<T, Space, Comm, Rule, Schedule>;
  static constexpr bool posts = posting_communicator<Comm, Space>;  // else ready() would wait for other ranks

 public:
  /// Where a parameter's gradient is, and where the report on it is.
  struct location {
    std::size_t bucket;    ///< in which bucket
    std::size_t segment;   ///< the first of its segments in its report
    index_range elements;  ///< of the bucket
    std::size_t report;    ///< which one of those that wait() returns
  };

  /// @cond internal
  /// Arguments as for plan_bucketed, which makes it.
  template <bool Checked>
  bucketed(const Space& space, const Comm& comm, std::span<const segments> parameters, std::size_t bucket_bytes,
           const Rule& rule, const Schedule& order, const basic_options<Checked>& choices,
           detail::joint_set_up& together)
      : space_(space), parameters_(parameters.size()) {
    // What is weighed as a whole is one bucket.
    fill_buckets(parameters, detail::weighs_whole_model(rule) ? std::numeric_limits<std::size_t>::max() : bucket_bytes);
    if (buckets_.size() > 1 && detail::weighs_whole_model(detail::inner_rule_of(order)))
      together.refuse("adasum::plan_bucketed: the inner rule of the schedule " + std::string(Schedule::name) +
                      " weighs the whole model, but is asked about one bucket at a time: let it weigh segments");
    for (auto& one : buckets_) {
      const auto cut = segments_of(parameters.subspan(one.parameters.begin, one.parameters.size()));
      plans_.push_back(
          plan_type(detail::make_plan<T>(together, "adasum::plan_bucketed", space, comm, cut, rule, order,
                                         detail::options_of_plan(choices), detail::plan_purpose::of_user)));
      one.memory = plans_.back().buffer(together);
      one.missing = one.parameters.size();
    }
    reports_.resize(plans_.size());
    meet_at_the_end(together, choices.check_agreement);
  }
  /// @endcond
  bucketed(const bucketed&) = delete;
  bucketed& operator=(const bucketed&) = delete;
  /// In the middle of a pass, does what wait() does, except that it writes to no gradient of the caller's.
  ~bucketed() {
    if (!is_in_pass_) return;
    for (auto& one : parameters_) one.callers = {};
    try {
      wait();
    } catch (...) {  // the other ranks know
    }
  }

  /// Memory for the gradient of parameter i: write it there, then call ready(i). After wait(), the result is there.
  std::span<T> gradient(std::size_t i) {
    const auto& at = parameter_at(i, "gradient").at;
    return buckets_[at.bucket].memory.subspan(at.elements.begin, at.elements.size());
  }

  /// The gradient of parameter i lies in gradient(i), which belongs to this object until wait() has returned. If its bucket
  /// is now complete, its reduction starts; reductions in flight continue. The call does not wait for other ranks.
  /// @throws bad_input  there is no parameter i, or it is ready already; nothing has happened then
  void ready(std::size_t i) {
    mark(i, {});
    if constexpr (posts) test();
  }

  /// The same for a gradient that lies elsewhere. It is copied to gradient(i), and at the end the result is copied back:
  /// it must stay valid until wait() has returned.
  /// @throws bad_input  as above; or it is not as long as the parameter
  template <class Gradient>
  void ready(std::size_t i, Gradient&& callers) {
    if constexpr (detail::is_output_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the buckets were made for another element type");
      mark(i, detail::span_of(callers));
      if constexpr (posts) test();
    }
  }

  /// Continues as far as is possible without waiting for other ranks. If the communicator cannot post exchanges, it reduces
  /// all buckets that are complete, as allreduce_plan::test does. @return whether all buckets have been reduced
  bool test() {
    for (; at_ < buckets_.size(); ++at_) {
      auto& plan = plans_[at_];
      if (!plan.is_in_flight()) {
        if (buckets_[at_].missing > 0) return false;
        plan.start();
      }
      if (!plan.test()) return false;
      finish_one();
    }
    return true;
  }

  /// Ends the pass: returns when all buckets have been reduced. If one of them fails, the exception is thrown after the
  /// others have been reduced. After a timeout, no bucket waits again: those that are left fail at once, on all ranks.
  /// @return a report for each bucket (location::report); overwritten by the next pass
  /// @throws bad_input  a parameter was not marked ready; its bucket fails on the other ranks, too. With
  ///                    options::check_agreement, all ranks get an agreement_error instead
  /// @throws what allreduce_plan throws; the gradients of that bucket are then unspecified where they lie in gradient(i),
  ///         and the caller's own are as they were
  std::span<const report* const> wait() {
    for (; at_ < buckets_.size(); ++at_) finish_one();
    at_ = 0;
    is_in_pass_ = has_timed_out_ = false;
    for (auto& one : parameters_) one.is_ready = false;
    for (auto& one : buckets_) one.missing = one.parameters.size();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return reports_;
  }

  /// How many parameters there are.
  std::size_t parameters() const { return parameters_.size(); }
  /// How many buckets they are in.
  std::size_t buckets() const { return buckets_.size(); }
  /// In which bucket, and where in it, the gradient of parameter i is.
  const location& location_of(std::size_t i) const { return parameter_at(i, "location_of").at; }

 private:
  struct parameter {
    location at;
    std::span<T> callers;  // where its gradient came from, and the result goes
    bool is_ready = false;
  };
  struct bucket {
    index_range parameters;
    std::span<T> memory{};
    std::size_t missing{};  // parameters that are not ready
  };

  /// From the last parameter to the first.
  void fill_buckets(std::span<const segments> parameters, std::size_t bucket_bytes) {
    for (std::size_t last = parameters.size(), first = last; last > 0; last = first) {
      std::size_t length = 0;
      do {
        length += parameters[--first].total();
      } while (first > 0 &&
               (length + parameters[first - 1].total()) * sizeof(T) <= std::max(length * sizeof(T), bucket_bytes));
      std::size_t segment = 0, begin = 0;
      for (auto i = first; i < last; ++i) {
        parameters_[i].at = {buckets_.size(), segment, {begin, begin + parameters[i].total()}, buckets_.size()};
        segment += parameters[i].size();
        begin += parameters[i].total();
      }
      buckets_.push_back({{first, last}});
    }
  }
  static segments segments_of(std::span<const segments> parameters) {
    std::vector<std::size_t> lengths;
    for (const auto& one : parameters)
      for (std::size_t k = 0; k < one.size(); ++k) lengths.push_back(one.length(k));
    return segments(lengths);
  }

  /// All ranks have made the same number of buckets.
  void meet_at_the_end(detail::joint_set_up& together, bool compares) const {
    detail::call_signature mine;
    mine.set(mine.activity, "making buckets");
    mine.length = buckets_.size();
    const std::size_t none[] = {0};
    detail::agreement_memory memory(compares ? together.size() : 0);
    together.meet(mine, segments_view{none}, memory);
  }

  const parameter& parameter_at(std::size_t i, const char* call) const {
    if (i < parameters_.size()) return parameters_[i];
    throw bad_input(std::string("adasum::bucketed::") + call + ": there is no parameter " + std::to_string(i) +
                    ", only " + std::to_string(parameters_.size()) + ", numbered from 0");
  }

  /// @param callers  where the gradient lies, if not in its bucket
  void mark(std::size_t i, std::optional<std::span<T>> callers) {
    const auto name = [&] { return "adasum::bucketed::ready: parameter " + std::to_string(i); };
    if (parameter_at(i, "ready").is_ready) throw bad_input(name() + " is ready already; wait() ends the pass");
    auto& one = parameters_[i];
    if (callers && callers->size() != one.at.elements.size())
      throw bad_input(name() + " has " + detail::counted(one.at.elements.size(), "element") + ", its gradient " +
                      std::to_string(callers->size()));
    if (callers && callers->data() == nullptr && !callers->empty())
      throw bad_input(name() + ": its gradient is a null pointer");
    is_in_pass_ = true;
    one.callers = callers.value_or(std::span<T>{});
    copy(one.callers, gradient(i));
    one.is_ready = true;
    --buckets_[one.at.bucket].missing;
  }

  /// The reduction of the bucket at_ is ended, or refused if it cannot begin. What it throws is kept.
  void finish_one() {
    auto& one = buckets_[at_];
    auto& plan = plans_[at_];
    try {
      if (one.missing > 0) plan.refuse(missing_in(one), one.memory);
      if (has_timed_out_) plan.refuse("adasum::bucketed::wait: an earlier bucket has timed out", one.memory);
      if (!plan.is_in_flight()) plan.start();
      reports_[at_] = &plan.wait();
      copy_back(one.parameters);
    } catch (const timeout_error&) {  // the rank that did not come is missing in the other buckets, too
      has_timed_out_ = true;
      keep(std::current_exception());
    } catch (const nonfinite_error& problem) {
      keep(detail::exception_from([&] { return nonfinite_error(problem.what() + (", in " + name_of(one))); }));
    } catch (...) {
      keep(std::current_exception());
    }
  }
  void keep(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
  }
  /// For errors that count segments from the first one in the bucket.
  std::string name_of(const bucket& one) const {
    const auto [first, last] = one.parameters;
    return "bucket " + std::to_string(&one - buckets_.data()) + " (parameter " + std::to_string(first) +
           (last - first > 1 ? " to " + std::to_string(last - 1) : "") + ")";
  }

  std::string missing_in(const bucket& one) const {
    auto i = one.parameters.begin;
    while (parameters_[i].is_ready) ++i;
    return "adasum::bucketed::wait: parameter " + std::to_string(i) + " is not ready";
  }

  void copy_back(index_range parameters) {
    for (auto i = parameters.begin; i < parameters.end; ++i) copy(gradient(i), parameters_[i].callers);
  }
  /// Nothing where either is not there, or both are the same.
  void copy(std::span<const T> from, std::span<T> to) const {
    if (from.empty() || to.empty() || from.data() == to.data()) return;
    space_.copy(from.data(), to.data(), to.size());
    space_.fence();
  }

  Space space_;
  std::vector<parameter> parameters_;
  std::vector<bucket> buckets_;
  std::vector<plan_type> plans_;  // one for each
  std::vector<const report*> reports_;
  std::size_t at_ = 0;  // buckets before this one have been reduced
  bool is_in_pass_ = false;
  bool has_timed_out_ = false;  // a bucket of this pass
  std::exception_ptr error_;
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
  if constexpr (detail::is_space_argument<Space, T>() && detail::is_communicator_argument<Comm, Space>())
    if constexpr (detail::are_arguments<detail::taken_arguments{.segments = false}, A, B, C>()) {
      const auto choices = detail::options_among("adasum::plan_bucketed", a, b, c);
      return detail::joint_set_up("adasum::plan_bucketed", detail::ref_to_communicator(space, comm),
                                  choices.check_agreement)
          .run([&](detail::joint_set_up& together) {
            const auto rule = detail::argument_or<detail::argument::rule>(rules::adasum{}, a, b, c);
            const auto schedule = detail::argument_or<detail::argument::schedule>(schedules::automatic{}, a, b, c);
            return bucketed<T, Space, Comm, std::remove_const_t<decltype(rule)>,
                            std::remove_const_t<decltype(schedule)>>(space, comm, detail::segments_of_each(parameters),
                                                                     bucket_bytes, rule, schedule, choices, together);
          });
    }
}

}  // namespace adasum
