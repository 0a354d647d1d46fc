// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/parts.hpp"
#include "core/report.hpp"
#include "core/segments.hpp"
#include "detail/arguments.hpp"
#include "detail/engine/collective_setup.hpp"
#include "detail/engine/result_layout.hpp"
#include "detail/engine/run_once.hpp"
#include "detail/gradient_arguments.hpp"
#include "rules/adasum.hpp"
#include "schedules/automatic.hpp"

namespace adasum {

class serial_space;
class mpi_communicator;

/// A reduction that is set up once and run many times. plan_allreduce sets up partners, buffers and the report; running the
/// plan allocates nothing, unless a segment is combined vector by vector (report::recombined_segments). All ranks make and
/// run their plans in the same order. Of the plans on one communicator, only one may be in flight at a time (start), because
/// messages are matched by their order alone. Any other reduction there throws bad_input before anything is sent.
///
/// A plan is a handle. It can be moved, even while a reduction is in flight. It can be empty, for example as a member of a
/// class that gets its plan later. With MPI and the default rule and schedule, its type is short:
///
///     adasum::allreduce_plan<float> plan;   // #include <adasum/mpi.hpp>
///
/// If a plan is destroyed while it is in flight, it withdraws from the reduction; the destructor returns when no other rank
/// waits for this rank any more, and the others get a communication_error from wait(). Destroying plans is not collective,
/// even if they work in memory that ranks share: each rank destroys its plans in any order, at any time.
template <scalar T, class Space = serial_space, class Comm = mpi_communicator, class Rule = rules::adasum,
          class Schedule = schedules::automatic>
class allreduce_plan {
 public:
  /// An empty plan: every call except is_empty(), is_in_flight() and assignment throws bad_input.
  allreduce_plan() = default;
  /// The other one is empty then.
  allreduce_plan(allreduce_plan&&) noexcept = default;
  allreduce_plan& operator=(allreduce_plan&&) noexcept = default;

  /// Whether there is no plan here yet.
  bool is_empty() const { return held_ == nullptr; }

  /// Reduces the gradient in place, on all ranks together; returns when the result is there. If inner products are measured,
  /// Inf or NaN in a segment of any rank's gradient makes that whole segment NaN on all ranks; options::nonfinite can choose
  /// otherwise.
  ///
  /// @return  the same object at each run, overwritten by the next
  /// @throws bad_input            the gradient's length is not that of the plan; the other ranks get a communication_error
  ///                              (of parts and shards: those that need something of this rank's)
  /// @throws agreement_error      with options::check_agreement: the ranks differ, or one of them got bad input; the same on
  ///                              all ranks, and nothing has changed
  /// @throws nonfinite_error      a gradient holds Inf or NaN, under nonfinite_policy::raise; the same on all ranks, and
  ///                              nothing has changed
  /// @throws communication_error  a rank failed, or the message layer did; the gradient is then unspecified. (Short gradients
  ///                              in shared memory are combined by each rank alone, once all ranks have come: a failure on
  ///                              one rank after that does not affect the others.)
  template <class Gradient>
  const report& operator()(Gradient&& gradient) {
    const auto elements = elements_of(gradient);
    auto& plan = engine("operator()");
    return plan.run(bytes_of(elements), elements.size(), plan.problem_with(bytes_of(elements), elements.size()));
  }

  /// Reduces buffer() in place. All ranks call this, or all of them reduce gradients of their own.
  const report& operator()() {
    auto& plan = engine("operator()");
    return plan.run(plan.buffer("operator()"), length(), {});
  }

  // ── the same, beside other work: as with MPI's persistent requests, each start() is followed by one wait() ──

  /// Begins what operator() does, without waiting for other ranks. The gradient belongs to the plan until wait() has
  /// returned. Other ranks may call start() or operator(): both run the same reduction. A rank that calls start() must also
  /// call wait().
  ///
  /// Exchanges and arithmetic make progress in start(), test() and wait(), on the caller's thread; between these calls, only
  /// the message layer may work. If something is wrong with the gradient, wait() throws the error.
  /// @throws bad_input  this plan or another one on its communicator is in flight already; nothing has happened then
  template <class Gradient>
  void start(Gradient&& gradient) {
    const auto elements = elements_of(gradient);
    auto& plan = engine("start");
    plan.start(bytes_of(elements), elements.size(), plan.problem_with(bytes_of(elements), elements.size()));
  }
  /// For buffer().
  void start() {
    auto& plan = engine("start");
    plan.start(plan.buffer("start"), length(), {});
  }

  /// Continues the reduction as far as is possible without waiting for other ranks. If the communicator cannot post exchanges
  /// (posting_communicator), that is not possible; then the first test() waits for the other ranks and finishes the run.
  /// @return whether the reduction has ended, well or not: wait() returns or throws at once
  /// @throws bad_input  nothing was started
  bool test() { return engine("test").test(); }
  /// Returns when the result is there.
  /// @return what operator() returns
  /// @throws bad_input  nothing was started; or what operator() throws
  const report& wait() { return engine("wait").wait(); }
  /// Whether a reduction was started that wait() has not ended.
  bool is_in_flight() const { return held_ && held_->is_in_flight(); }

  /// Memory for a gradient, which the plan owns: length() elements, uninitialised, valid as long as the plan. If the ranks
  /// share memory and the schedule can use it, the buffer lies in that memory. Either all ranks call this or none does: the
  /// first call waits for all of them. Afterwards, gradients that lie elsewhere are reduced by messages.
  /// @throws what plan_allreduce throws
  std::span<T> buffer() { return elements_at(engine("buffer").buffer("buffer")); }

  /// @cond internal
  /// For bucketed: as a part of a larger set-up.
  std::span<T> buffer(detail::collective_setup& together) { return elements_at(engine("buffer").buffer(together)); }
  /// @endcond

  /// How many elements a gradient has.
  std::size_t length() const { return segments().all().end; }
  /// The segments into which it is cut.
  segments_view segments() const { return engine("segments").segments(); }
  /// The execution space, a copy of the one that was given.
  const Space& space() const { return *static_cast<const Space*>(engine("space").space()); }
  /// What the last run found; an empty report before the first.
  const report& last_report() const { return engine("last_report").last_report(); }
  /// The rule in use, with its state if it has any.
  Rule& current_rule() { return *static_cast<Rule*>(engine("current_rule").rule()); }

  /// @cond internal
  /// For callers that found something wrong with this rank's input: as if operator() had found it.
  /// @param elements  buffer(), if the other ranks reduce theirs
  [[noreturn]] void refuse(const std::string& problem, std::span<T> elements = {}) {
    engine("refuse").run(bytes_of(elements), elements.size(), problem);
    throw bad_input(problem);
  }

  /// The same in place of start(): wait() throws it.
  /// @throws bad_input  this plan or another one on its communicator is in flight already; nothing has happened then
  void start_refusing(const std::string& problem, std::span<T> elements = {}) {
    engine("start").start(bytes_of(elements), elements.size(), problem);
  }

  /// What plan_allreduce and the single calls make.
  explicit allreduce_plan(detail::plan_ptr held) : held_(std::move(held)), in_parts_(held_->gives_parts()) {}
  /// @endcond

 protected:
  /// @cond internal
  /// Empty.
  explicit allreduce_plan(bool in_parts) : in_parts_(in_parts) {}
  index_range wanted(const char* call) const { return engine(call).wanted(); }
  /// @endcond

 private:
  detail::plan& engine(const char* call) const {
    if (!held_) {
      const auto names = detail::plan_names::of(in_parts_);
      throw bad_input({names.member, call, ": the plan is empty; ", names.maker, " makes one"});
    }
    return *held_;
  }

  static std::byte* bytes_of(std::span<T> elements) { return reinterpret_cast<std::byte*>(elements.data()); }
  std::span<T> elements_at(std::byte* memory) const { return {reinterpret_cast<T*>(memory), length()}; }
  template <class Gradient>
  static std::span<T> elements_of(Gradient& gradient) {
    if constexpr (detail::is_output_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
      return detail::span_of(gradient);
    } else {
      return {};
    }
  }

  detail::plan_ptr held_;
  bool in_parts_ = false;  // see result_layout
};

namespace detail {

// Where none is given.
inline constexpr rules::adasum usual_rule{};
inline constexpr schedules::automatic usual_schedule{};
template <class... As>
using rule_among = std::remove_cvref_t<decltype(argument_or<argument::rule>(usual_rule, std::declval<As&>()...))>;
template <class... As>
using schedule_among =
    std::remove_cvref_t<decltype(argument_or<argument::schedule>(usual_schedule, std::declval<As&>()...))>;

/// The arguments of a call among ranks that follow its data or its segments.
template <scalar T, taken_arguments Taken, class Space, class Comm, class... As>
plan_arguments arguments_among(const char* call, const Space& space, const Comm& comm, segments_view segments,
                               const As&... as) {
  auto given = arguments_of<T>(call, space, comm, argument_or<argument::rule>(usual_rule, as...),
                               argument_or<argument::schedule>(usual_schedule, as...), segments,
                               options_of_plan(options_among(call, as...)));
  given.to.in_parts = Taken.parts;
  if (const parts* const dealt = find_argument<parts>(as...)) given.to.offsets = dealt->offsets();
  given.mine = find_argument<shard>(as...);
  return given;
}

/// A plan of this type, by the call that is named in messages; if an argument is none, the compiler says why.
template <scalar T, template <class, class, class, class, class> class Plan, taken_arguments Taken, class Space,
          class Comm, class... As>
auto plan_for(const char* call, const Space& space, const Comm& comm, const segments_or_length& segments, As&... as) {
  if constexpr (are_arguments<Taken, As...>())
    if constexpr (is_space_argument<Space, T>())
      if constexpr (is_communicator_argument<Comm, Space>()) {
        auto given = arguments_among<T, Taken>(call, space, comm, segments_view{}, as...);
        plan_ptr made;
        collective_setup(call, given.comm, given.choices.check_agreement).run([&](collective_setup& together) {
          segments.visit([&](segments_view cut) {
            given.segments = cut;
            made.reset(new plan(given, together));
          });
        });
        return Plan<T, Space, Comm, rule_among<As...>, schedule_among<As...>>(std::move(made));
      }
}

}  // namespace detail

/// A plan for gradients of T that are cut into these segments, or of this length. Every rank makes one with the same
/// arguments. These may follow the segments, in any order and each at most once: a rule, a schedule, options, and a
/// shard (see combine_allreduce; ranks that have different shards may give different lengths).
///
///     auto plan = adasum::plan_allreduce<float>(exec, comm, segments, schedules::recursive_halving{}, {.wire = …});
///
/// Collective, and waits for all ranks: in a few short messages, or in memory that they share, the ranks tell each other that they
/// are ready, and compare a hash of what they have made. So if anything fails on one rank, even for lack of memory,
/// that rank throws the error, all others throw too, and none waits in a later run. If the schedule asks for it
/// (schedules::shared_memory; schedules::automatic, where it saves time), the call makes memory that the ranks share.
/// If there is no room for that memory, schedules::automatic sends messages instead (last_report().schedule() says what
/// ran).
/// @return an allreduce_plan
/// @throws agreement_error      with options::check_agreement: the ranks are about to make different plans, or one of them
///                              got bad input; says what
/// @throws communication_error  without that option, in the same cases; with or without it, another rank failed in some other
///                              way, and throws the cause there
/// @throws shared_memory_error  on all ranks: the schedule needs shared memory, and there is not enough room
/// @throws bad_input  the boundaries of the segments do not begin at 0, or decrease; the schedule cannot be built (with
///                    options::check_agreement, this is an agreement_error); options::wire is given, but gradients are not
///                    float; the schedule needs memory that all ranks share, and they share none; a plan is in flight on this
///                    communicator
template <scalar T, class Space, class Comm, class A = detail::unnamed_options, class B = detail::unnamed_options,
          class C = detail::unnamed_options, class D = detail::unnamed_options>
auto plan_allreduce(const Space& space, const Comm& comm, const detail::segments_or_length& segments, A&& a = {},
                    B&& b = {}, C&& c = {}, D&& d = {}) {
  constexpr detail::taken_arguments taken{.segments = false, .shard = true};
  return detail::plan_for<T, allreduce_plan, taken>("adasum::plan_allreduce", space, comm, segments, a, b, c, d);
}

}  // namespace adasum
