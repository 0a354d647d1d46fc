// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "core/segments.hpp"
#include "detail/arguments.hpp"
#include "detail/collective/destination.hpp"
#include "detail/collective/plan_state.hpp"
#include "detail/gradient_arguments.hpp"
#include "rules/adasum.hpp"
#include "schedule/automatic.hpp"

namespace adasum {

class serial_space;
class mpi_communicator;

namespace detail {

/// Whether a schedule says at compile time that it works in shared memory only; of others, the plan finds out.
template <class Schedule>
constexpr bool works_in_shared_memory_only = [] {
  if constexpr (requires {
                  typename std::integral_constant<shared_memory_use, Schedule::uses_shared_memory(2, schedule_input{})>;
                })
    return Schedule::uses_shared_memory(2, schedule_input{}) == shared_memory_use::required;
  else
    return false;
}();

}  // namespace detail

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
  using setup_type = detail::plan_setup<T, Space, Comm, Rule, Schedule>;
  using state_type = detail::plan_state<T, Space, Comm, Rule, Schedule>;

 public:
  /// An empty plan: every call except is_empty(), is_in_flight() and assignment throws bad_input.
  allreduce_plan() = default;
  /// The other one is empty then.
  allreduce_plan(allreduce_plan&&) noexcept = default;
  allreduce_plan& operator=(allreduce_plan&&) noexcept = default;

  /// Whether there is no plan here yet.
  bool is_empty() const { return state_ == nullptr; }

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
    auto& plan = state("operator()");
    return plan.run(elements, problem_with(elements));
  }

  /// Reduces buffer() in place. All ranks call this, or all of them reduce gradients of their own.
  const report& operator()() { return state("operator()").run(state("operator()").buffer("operator()"), {}); }

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
    state("start");
    begin(elements, problem_with(elements));
  }
  /// For buffer().
  void start() { begin(state("start").buffer("start"), {}); }

  /// Continues the reduction as far as is possible without waiting for other ranks. If the communicator cannot post exchanges
  /// (posting_communicator), that is not possible; then the first test() waits for the other ranks and finishes the run.
  /// @return whether the reduction has ended, well or not: wait() returns or throws at once
  /// @throws bad_input  nothing was started
  bool test() {
    auto& running = state("test").in_flight("test");
    return posts ? running.test() : running.finish_run();
  }

  /// Returns when the result is there.
  /// @return what operator() returns
  /// @throws bad_input  nothing was started; or what operator() throws
  const report& wait() {
    auto& plan = state("wait");
    return plan.finish(plan.in_flight("wait"));
  }

  /// Whether a reduction was started that wait() has not ended.
  bool is_in_flight() const { return state_ && state_->is_in_flight(); }

  /// Memory for a gradient, which the plan owns: length() elements, uninitialised, valid as long as the plan. If the ranks
  /// share memory and the schedule can use it, the buffer lies in that memory. Either all ranks call this or none does: the
  /// first call waits for all of them. Afterwards, gradients that lie elsewhere are reduced by messages.
  /// @throws what plan_allreduce throws
  std::span<T> buffer() { return state("buffer").buffer("buffer"); }

  /// @cond internal
  /// For bucketed: as a part of a larger set-up.
  std::span<T> buffer(detail::joint_set_up<Space, Comm>& together) { return state("buffer").buffer(together); }
  /// @endcond

  /// How many elements a gradient has.
  std::size_t length() const { return state("length").setup().length(); }
  /// The segments into which it is cut.
  segments_view segments() const { return state("segments").setup().segments(); }
  /// The execution space, a copy of the one that was given.
  const Space& space() const { return state("space").setup().space(); }
  /// What the last run found; an empty report before the first.
  const report& last_report() const { return state("last_report").last_report(); }
  /// The rule in use, with its state if it has any.
  Rule& current_rule() { return state("current_rule").rule(); }

  /// @cond internal
  /// For callers that found something wrong with this rank's input: as if operator() had found it.
  /// @param elements  buffer(), if the other ranks reduce theirs
  [[noreturn]] void refuse(const std::string& problem, std::span<T> elements = {}) {
    state("refuse").run(elements, problem);
    throw bad_input(problem);
  }

  /// The same in place of start(): wait() throws it.
  /// @throws bad_input  this plan or another one on its communicator is in flight already; nothing has happened then
  void start_refusing(const std::string& problem, std::span<T> elements = {}) {
    state("start");
    begin(elements, problem);
  }

  /// For single calls, which keep their plan: whether it is that of a call with these arguments.
  bool is_for(const Space& space, segments_view segments, const Schedule& schedule, const basic_options<true>& choices,
              const detail::destination& to) const {
    return state("is_for").setup().is_for(space, segments, schedule, choices, to);
  }
  /// For single calls, which keep their plan: before each run, all ranks find out whether they are about to run it.
  void meet(detail::joint_set_up<Space, Comm>& together) { state("meet").meet(together); }

  /// For bucketed, where the gradient comes in pieces: the first `count` are there.
  void set_pieces(std::size_t count) { state("set_pieces").set_pieces(count); }
  /// For bucketed, in a run that was started: the rest of the gradient will not come. wait() throws the problem.
  void refuse_rest(std::exception_ptr problem) { state("refuse_rest").refuse(std::move(problem)); }

  /// What plan_allreduce and the single calls make.
  allreduce_plan(setup_type setup, Rule rule, detail::plan_purpose purpose, detail::joint_set_up<Space, Comm>& together)
      : state_(new state_type(std::move(setup), std::move(rule), purpose, together)),
        to_(state_->setup().to().what()) {}
  /// @endcond

 protected:
  /// @cond internal
  /// Empty, of a plan whose result goes elsewhere.
  explicit allreduce_plan(detail::destination::kind to) : to_(to) {}
  detail::destination to(const char* call) const { return state(call).setup().to(); }
  index_range wanted(const char* call) const { return state(call).setup().wanted(); }
  /// @endcond

 private:
  static constexpr bool posts = posting_communicator<Comm, Space>;

  state_type& state(const char* call) const {
    if (!state_)
      throw bad_input(std::string(names().member) + call + ": the plan is empty; " + names().maker + " makes one");
    return *state_;
  }
  auto names() const { return detail::destination::names_of(to_); }
  std::string problem_with(std::span<const T> elements) const {
    return state_->setup().problem_with(elements, names().type);
  }

  template <class Gradient>
  static std::span<T> elements_of(Gradient& gradient) {
    if constexpr (detail::is_output_argument<Gradient>()) {
      static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
      return detail::span_of(gradient);
    } else {
      return {};
    }
  }

  void begin(std::span<T> elements, const std::string& problem) {
    auto& running = state("start").begin(elements, problem, posts, "start");
    if (posts) running.test();
  }

  std::unique_ptr<state_type, detail::plan_deleter> state_;
  detail::destination::kind to_ = detail::destination::kind::every_rank;
};

namespace detail {

/// A plan for the call that is named in messages, as a part of a larger set-up.
/// @param pieces, to, mine  see plan_setup
/// @tparam Plan             its type
template <scalar T, template <class, class, class, class, class> class Plan = allreduce_plan, class Space, class Comm,
          class Rule, class Schedule, bool Checked>
auto make_allreduce_plan(joint_set_up<Space, Comm>& together, const char* call, const Space& space, const Comm& comm,
                         segments_view segments, const Rule& rule, const Schedule& schedule,
                         const basic_options<Checked>& choices, plan_purpose purpose,
                         std::vector<index_range> pieces = {}, const destination& to = {},
                         const shard* mine = nullptr) {
  static_assert(schedule_for<Schedule, Rule>,
                "this schedule combines gradients pair by pair, and the rule needs all inner products at once: use "
                "schedules::all_to_all, schedules::shared_memory or schedules::automatic");
  static_assert(
      shares_gradients<Comm, Space> || !works_in_shared_memory_only<Schedule>,
      "this schedule works in memory that the ranks share, and the communicator offers none that the execution space "
      "can work in");
  return Plan<T, Space, Comm, Rule, Schedule>(
      plan_setup<T, Space, Comm, Rule, Schedule>(space, comm, segments, schedule, choices, call, std::move(pieces), to,
                                                 mine),
      rule, purpose, together);
}

/// A plan of this type, by the call that is named in messages, with the arguments that follow its segments.
template <scalar T, template <class, class, class, class, class> class Plan, class Space, class Comm, class... As>
auto plan_for(const char* call, const Space& space, const Comm& comm, const segments_or_length& segments,
              const destination& to, As&... as) {
  const auto choices = options_among(call, as...);
  return joint_set_up(call, space, comm, choices.check_agreement).run([&](auto& together) {
    return segments.visit([&](segments_view cut) {
      return make_allreduce_plan<T, Plan>(together, call, space, comm, cut,
                                          argument_or<argument::rule>(rules::adasum{}, as...),
                                          argument_or<argument::schedule>(schedules::automatic{}, as...), choices,
                                          plan_purpose::of_user, {}, to, find_argument<shard>(as...));
    });
  });
}

}  // namespace detail

/// A plan for gradients of T that are cut into these segments, or of this length. Every rank makes one with the same
/// arguments. These may follow the segments, in any order and each at most once: a rule, a schedule, options, and a
/// shard (see combine_allreduce; ranks that have different shards may give different lengths).
///
///     auto plan = adasum::plan_allreduce<float>(exec, comm, segments, schedules::recursive_halving{}, {.wire = …});
///
/// Collective, and waits for all ranks: in ⌈log₂P⌉ exchanges of one short message, the ranks tell each other that they
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
  if constexpr (detail::are_arguments<detail::taken_arguments{.segments = false, .shard = true}, A, B, C, D>())
    if constexpr (detail::is_space_argument<Space, T>())
      if constexpr (detail::is_communicator_argument<Comm, Space>()) {
        return detail::plan_for<T, allreduce_plan>("adasum::plan_allreduce", space, comm, segments, {}, a, b, c, d);
      }
}

}  // namespace adasum
