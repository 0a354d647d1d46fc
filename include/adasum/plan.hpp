// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/agreement.hpp"
#include "collective/staged_reduction.hpp"
#include "core/concepts.hpp"
#include "core/error.hpp"
#include "core/gradient.hpp"
#include "core/options.hpp"
#include "core/report.hpp"
#include "rules/adasum.hpp"
#include "schedule/automatic.hpp"
#include "schedule/direct.hpp"

namespace adasum {

namespace detail {

/// The rule that a schedule brings for its inner stages.
template <class Schedule>
auto inner_rule_of(const Schedule& order) {
  if constexpr (requires { order.inner; })
    return order.inner;
  else
    return no_inner_rule{};
}

/// Whether the communicator's shared memory can hold gradients of the space, or any address will do.
template <class Comm, class Space>
constexpr bool shares_gradients = [] {
  if constexpr (shared_memory_communicator<Comm>)
    return !device_space<Space> || memory_shared_by<Comm>::type::every_address;
  else
    return false;
}();

template <class Schedule>
constexpr bool needs_shared_memory = requires { requires Schedule::shared_memory_only; };

}  // namespace detail

/// A reduction that is set up once and run many times: partners, buffers and the report are made by the constructor,
/// and running allocates nothing. Made by plan_allreduce. All ranks run their plans in the same order; of those on one
/// communicator, one runs at a time, also beside other work (start).
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, schedule Schedule>
class allreduce_plan {
  static_assert(schedule_for<Schedule, Rule>,
                "this schedule combines gradients pair by pair, and the rule is not pairwise: use schedules::gram, "
                "schedules::direct or schedules::automatic");
  static_assert(
      detail::shares_gradients<Comm, Space> || !detail::needs_shared_memory<Schedule>,
      "this schedule works in memory that the ranks share, and the communicator offers none that the execution space "
      "can work in");

 public:
  /// With schedules::direct, and with automatic where that pays (automatic::pays_in_place), makes memory that the ranks
  /// share, where the communicator offers that: collective, as destroying the plan is then. Where there is no room for
  /// so much, automatic goes by messages (last_report().schedule() says what ran). Otherwise sends nothing.
  /// @throws agreement_error  with automatic and options::check_agreement: the ranks are about to make different plans
  /// @throws shared_memory_error  schedules::direct: on all ranks, there is no room for so much
  /// @throws bad_input  the schedule cannot be built (with options::check_agreement: thrown by the first run, as an
  ///                    agreement_error on all ranks); options::wire is for float gradients; not all ranks share memory
  template <bool Checked>
  allreduce_plan(Space space, Comm comm, segments_view segments, Rule rule, Schedule order,
                 const basic_options<Checked>& choices)
      : space_(std::move(space)),
        comm_(std::move(comm)),
        rule_(std::make_unique<Rule>(std::move(rule))),
        order_(std::move(order)),
        offsets_(segments.offsets().begin(), segments.offsets().end()),
        options_{choices.check_agreement, choices.measure, choices.nonfinite, choices.wire, choices.patience_seconds} {
    if (options_.wire != wire_format::same && !detail::packs<Space, T>)
      throw bad_input(std::string("adasum::plan_allreduce: options::wire rounds float gradients; the elements are ") +
                      std::string(to_string(format_of<T>)) + ", or the execution space does not offer it");
    auto stages = detail::stages_or_problem(order_, comm_.rank(), comm_.size(), what(), schedules::gram{},
                                            compares() ? &schedule_problem_ : nullptr);
    const bool shares = wants_shared_memory();
    if (compares()) prepare_agreement(shares ? copied_place : callers_place);
    if (shares) {
      // A rank that disagrees makes no such memory, perhaps. It compares when it runs: then this is the same exchange.
      if (compares()) {
        auto mine = intention_;
        mine.length = length();
        detail::agree(space_, comm_, mine, intentions_);
      }
      make_in_place();
    }
    if (!in_place_) reduction_ = reduction(std::move(stages), chosen_name());
    last_ = &usual().last_report();
    if constexpr (detail::needs_shared_memory<Schedule>) {
      reduction_->share_memory();
      if (comm_.size() > 1 && !reduction_->is_direct())
        throw bad_input("adasum::plan_allreduce: " + std::string(Schedule::name) +
                        " needs ranks that all share memory");
    }
  }

  // In flight, a plan can be moved; destroyed, it withdraws from the reduction, and returns when no other rank waits
  // for it any more. The others get a communication_error from wait().
  allreduce_plan(allreduce_plan&&) = default;
  allreduce_plan& operator=(allreduce_plan&& other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(this);  // in the order that a reduction in flight needs
    return *std::construct_at(this, std::move(other));
  }
  ~allreduce_plan() = default;

  /// Reduces the gradient in place, on all ranks together; returns when the result is there. Inf or NaN in a segment of
  /// any rank's gradient makes that whole segment NaN on all ranks (where the rule is measured), or as
  /// options::nonfinite says.
  ///
  /// @return  the same object at each run, overwritten by the next
  /// @throws bad_input            a gradient of another length than the plan's; the other ranks get a
  ///                              communication_error
  /// @throws agreement_error      with options::check_agreement: the same on all ranks, nothing has changed
  /// @throws nonfinite_error      with nonfinite_policy::raise: the same on all ranks, nothing has changed
  /// @throws communication_error  a rank failed, or the message layer did; the gradient is then unspecified. (Where
  ///                              short gradients lie in shared memory, ranks need each other only at the beginning:
  ///                              what fails on one of them after that is its own matter.)
  template <mutable_gradient Gradient>
  const report& operator()(Gradient&& gradient) {
    const auto elements = elements_of(gradient);
    return run(elements, problem_of(elements));
  }

  /// Reduces buffer() in place. All ranks call this, or all of them reduce gradients of their own.
  const report& operator()() { return run(buffer(), {}); }

  // ── the same, beside other work: as with MPI's persistent requests, each start() is followed by one wait() ──

  /// Begins what operator() does. Does not wait for other ranks. The gradient belongs to the plan until wait() has
  /// returned. All ranks start, or all call operator(): for others that do, this is the same reduction.
  ///
  /// Nothing runs between the calls but what the message layer does by itself: exchanges are taken up, and arithmetic
  /// is done, in start(), test() and wait(), on the caller's thread. Where the communicator cannot post exchanges
  /// (posting_communicator), test() stops at the first of them, and wait() does the rest.
  /// What is wrong with the gradient, wait() throws.
  /// @throws bad_input  the plan is in flight already; nothing has happened then
  template <mutable_gradient Gradient>
  void start(Gradient&& gradient) {
    const auto elements = elements_of(gradient);
    begin(elements, problem_of(elements), true, "start").test();
  }
  /// For buffer().
  void start() { begin(buffer(), {}, true, "start").test(); }

  /// Goes on as far as is possible without waiting for other ranks. (One exception: segments that must be combined
  /// vector by vector, whose inner products have lost too much, wait for the others' inner products.)
  /// @return whether the reduction has ended, well or not: wait() returns or throws at once
  /// @throws bad_input  nothing was started
  bool test() { return in_flight("test").test(); }

  /// Returns when the result is there.
  /// @return what operator() returns
  /// @throws bad_input  nothing was started; or what operator() throws
  const report& wait() { return finish(in_flight("wait")); }

  /// Whether a reduction was started that wait() has not ended.
  bool is_in_flight() const { return in_flight_ != nullptr; }

  /// Gradient memory that the plan owns: length() elements, uninitialised. Valid as long as the plan. Where the ranks
  /// share memory and the schedule can use that, it lies there. All ranks call this, or none: the first call can be
  /// collective, and afterwards gradients that lie elsewhere are reduced by messages.
  std::span<T> buffer() {
    if (!buffer_) make_buffer();
    return {*buffer_, length()};
  }

  std::size_t length() const { return offsets_.back(); }
  segments_view segments() const { return segments_view{offsets_}; }
  const Space& space() const { return space_; }
  /// What the last run found; an empty report before the first.
  const report& last_report() const { return *last_; }
  /// The rule in use, with its state if it has any.
  Rule& current_rule() { return *rule_; }

  /// For callers that found something wrong with this rank's input: as if operator() had found it.
  /// @param elements  buffer(), if the other ranks reduce theirs
  [[noreturn]] void refuse(const std::string& problem, std::span<T> elements = {}) {
    run(elements, problem);
    throw bad_input(problem);
  }

 private:
  static constexpr bool is_automatic = std::is_same_v<Schedule, schedules::automatic>;
  using inner_rule = decltype(detail::inner_rule_of(std::declval<const Schedule&>()));
  using reduction_type = detail::staged_reduction<T, Space, Comm, Rule, inner_rule>;
  using memory = decltype(std::declval<const Space&>().template allocate<T>(0));

  template <class Gradient>
  static std::span<T> elements_of(Gradient& gradient) {
    static_assert(std::is_same_v<element_t<Gradient>, T>, "the plan was made for another element type");
    return detail::span_of(gradient);
  }
  std::string problem_of(std::span<const T> elements) const {
    return detail::problem_with_gradient(space_, elements, length(), "adasum::allreduce_plan");
  }

  problem what() const { return {length(), sizeof(T), segments().size(), tree_rule<Rule>, device_space<Space>}; }

  bool compares() const { return options_.check_agreement && comm_.size() > 1; }

  std::string_view chosen_name() const {
    if constexpr (requires { order_.chosen_name(comm_.size(), what()); })
      return order_.chosen_name(comm_.size(), what());
    else
      return Schedule::name;
  }

  std::unique_ptr<reduction_type> reduction(std::vector<stage> stages, std::string_view name) const {
    detail::reduction_settings<inner_rule> settings{std::move(stages), name, detail::inner_rule_of(order_)};
    if constexpr (requires { order_.leaf_ranks(comm_.size()); })
      if (schedule_problem_.empty()) settings.leaf_ranks = order_.leaf_ranks(comm_.size());
    settings.measure = options_.measure == measuring::always;
    settings.nonfinite = options_.nonfinite;
    settings.wire = options_.wire;
    settings.patience_seconds = options_.patience_seconds;
    return std::make_unique<reduction_type>(space_, comm_, *rule_, segments(), std::move(settings));
  }

  static constexpr std::string_view callers_place = "in the caller's memory", copied_place = "copied to shared memory",
                                    buffer_place = "in the plan's buffer";

  /// Whether gradients of the caller's are to be reduced in memory that the ranks share. The same on all ranks.
  bool wants_shared_memory() const {
    if constexpr (is_automatic && detail::shares_gradients<Comm, Space>)
      return order_.in_place && order_.pays_in_place(comm_.size(), what());
    else
      return false;
  }

  void make_in_place() {
    if (std::exchange(shares_memory_, true)) return;
    if constexpr (is_automatic && requires { comm_.all_share_memory(); })
      if (!comm_.all_share_memory()) return;
    if constexpr (detail::shares_gradients<Comm, Space> && requires { order_.stages_in_place(0, 1, what()); }) {
      auto stages = schedule_problem_.empty() ? order_.stages_in_place(comm_.rank(), comm_.size(), what())
                                              : schedules::gram{}.stages(comm_.rank(), comm_.size(), what());
      in_place_ = reduction(std::move(stages), is_automatic ? schedules::direct::name : Schedule::name);
      try {
        in_place_->share_memory();
      } catch (const shared_memory_error&) {  // on all ranks: by messages, then
        return in_place_.reset();
      }
      // automatic: where not all ranks share memory, messages are the better choice.
      if (is_automatic && !in_place_->is_direct()) in_place_.reset();
    }
  }

  void make_buffer() {
    make_in_place();
    buffer_ = usual().shared_gradient();
    if (!*buffer_) {
      own_memory_ = space_.template allocate<T>(length());
      buffer_ = own_memory_->data();
    } else if (!reduction_) {
      // From now on a gradient of the caller's is reduced by messages, since that memory is the caller's, too.
      reduction_ = reduction(order_.stages(comm_.rank(), comm_.size(), what()), chosen_name());
    }
  }

  /// What reduces a plan's gradients, unless they lie elsewhere than in buffer().
  reduction_type& usual() { return in_place_ ? *in_place_ : *reduction_; }

  bool is_buffer(std::span<const T> elements) const { return buffer_ && elements.data() == *buffer_; }
  reduction_type& reduction_for(std::span<const T> elements) {
    return in_place_ && (is_buffer(elements) || !reduction_) ? *in_place_ : *reduction_;
  }

  const report& run(std::span<T> elements, const std::string& problem) {
    return finish(begin(elements, problem, false, "operator()"));
  }

  /// @param posts  whether the reduction goes on in test(), too
  reduction_type& begin(std::span<T> elements, const std::string& problem, bool posts, const char* call) {
    if (in_flight_)
      throw bad_input(std::string("adasum::allreduce_plan::") + call + ": a reduction is in flight; wait() ends it");
    auto& chosen = reduction_for(elements);
    if (compares()) {
      auto mine = intention_;
      mine.length = elements.size();
      if (is_buffer(elements))
        mine.set(mine.place, buffer_place);
      else if (&chosen == reduction_.get())
        mine.set(mine.place, callers_place);
      if (!problem.empty()) mine.set(mine.problem, problem);
      chosen.start(elements.data(), posts, mine, intentions_);
    } else if (!problem.empty()) {
      chosen.start_refusing(std::make_exception_ptr(bad_input(problem)), posts);
    } else {
      chosen.start(elements.data(), posts);
    }
    in_flight_ = &chosen;
    return chosen;
  }

  reduction_type& in_flight(const char* call) const {
    if (!in_flight_) throw bad_input(std::string("adasum::allreduce_plan::") + call + ": nothing was started");
    return *in_flight_;
  }

  const report& finish(reduction_type& running) {
    in_flight_ = nullptr;
    last_ = &running.wait();
    return *last_;
  }

  /// What this rank intends at every run, and room for what the others do.
  void prepare_agreement(std::string_view place) {
    intention_ = detail::intention_of<T, Rule, inner_rule, Schedule>(space_, segments(), place, describe(options_));
    if (schedule_problem_.empty()) intention_.add_stages_of(order_, comm_.size(), what());
    intention_.set(intention_.problem, schedule_problem_);
    intentions_.resize(static_cast<std::size_t>(comm_.size()));
  }

  Space space_;
  Comm comm_;
  std::unique_ptr<Rule> rule_;  // of both reductions
  Schedule order_;
  std::vector<std::size_t> offsets_;
  options options_;
  std::string schedule_problem_;
  detail::intention intention_;
  std::vector<detail::intention> intentions_;  // of all ranks
  std::optional<memory> own_memory_;  // for buffer(), where the ranks do not share memory; a reduction may still use it
  std::unique_ptr<reduction_type> in_place_;   // in shared memory: with schedules::automatic, or for buffer()
  std::unique_ptr<reduction_type> reduction_;  // ends first: others wait for it, and not to give up shared memory
  bool shares_memory_ = false;                 // whether in_place_ is there, or cannot be
  std::optional<T*> buffer_;
  reduction_type* in_flight_ = nullptr;
  const report* last_ = nullptr;
};

/// A plan for gradients of T that are cut into these segments. Every rank makes one with the same arguments.
/// @throws bad_input if the boundaries of the segments do not begin at 0 or decrease
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule = rules::adasum,
          schedule Schedule = schedules::automatic, bool Checked = options::checked_by_default>
auto plan_allreduce(const Space& space, const Comm& comm, segments_view segments, const Rule& rule = {},
                    const Schedule& order = {}, const basic_options<Checked>& choices = {}) {
  detail::require_boundaries(segments, "adasum::plan_allreduce");
  return allreduce_plan<T, Space, Comm, Rule, Schedule>(space, comm, segments, rule, order, choices);
}

/// The same for Adasum by the given schedule.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, schedule Schedule,
          bool Checked = options::checked_by_default>
auto plan_allreduce(const Space& space, const Comm& comm, segments_view segments, const Schedule& order,
                    const basic_options<Checked>& choices = {}) {
  return plan_allreduce<T>(space, comm, segments, rules::adasum{}, order, choices);
}

}  // namespace adasum
