// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "../../core/concepts.hpp"
#include "../../core/deferred_error.hpp"
#include "../../core/error.hpp"
#include "../../core/optional_members.hpp"
#include "../../core/options.hpp"
#include "../../core/report.hpp"
#include "engine.hpp"
#include "joint_set_up.hpp"
#include "one_in_flight.hpp"
#include "plan_setup.hpp"

namespace adasum::detail {

/// What an allreduce_plan holds: the set-up, up to two engines (one works in memory that the ranks share, one sends
/// messages), and which of them is at work.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, schedule Schedule>
class plan_state {
  using setup_type = plan_setup<T, Space, Comm, Rule, Schedule>;
  using engine_type = engine_interface<T>;
  using set_up_type = joint_set_up<Space, Comm>;
  using buffer_type = decltype(std::declval<const Space&>().template allocate<T>(0));

 public:
  /// See allreduce_plan's constructor.
  plan_state(setup_type setup, Rule rule, plan_purpose purpose, set_up_type& together)
      : setup_(std::move(setup)), rule_(std::move(rule)) {
    setup_.purpose = purpose;
    if (setup_.choices().wire != wire_format::same && !packs<Space, T>)
      throw bad_input(std::string(setup_.call()) +
                      ": options::wire needs float gradients and an execution space that rounds them; here the "
                      "elements are " +
                      std::string(to_string(format_of<T>)) + " and the space is " + std::string(Space::name));
    setup_.learn_shards(rule_, of_caller, [&] { meet(together); });
    auto messages = setup_.settings(false);  // tells what is wrong with the schedule
    const auto use = shared_memory_use_of_schedule();
    const bool shares = use == shared_memory_use::preferred && can_share;
    setup_.prepare_agreement(rule_, shares ? copied : of_caller);
    if (shares || use == shared_memory_use::required) make_in_place(use, together);
    if (!in_place_) by_messages_ = new_engine(std::move(messages));
    if (use == shared_memory_use::required) require_in_place();
    last_ = &usual().last_report();
    meet(together);
    if (purpose == plan_purpose::kept) setup_.begin_runs();
  }
  plan_state(const plan_state&) = delete;
  plan_state& operator=(const plan_state&) = delete;
  ~plan_state() { abandon(); }

  /// A reduction in flight comes to an end.
  void abandon() noexcept {
    if (auto* const running = std::exchange(in_flight_, nullptr)) {
      set_reduction_in_flight(setup_.comm(), false);
      running->abandon();
    }
  }

  const setup_type& setup() const { return setup_; }
  Rule& rule() { return rule_; }
  const report& last_report() const { return *last_; }
  bool is_in_flight() const { return in_flight_ != nullptr; }

  /// Collective the first time.
  std::span<T> buffer(const char* call) {
    if (!buffer_) {
      require_idle(call);
      set_up_type(setup_.to().names().buffer, setup_.space(), setup_.comm(), setup_.compares())
          .run([&](auto& together) { make_buffer(together); });
    }
    return {*buffer_, setup_.length()};
  }
  /// The same as a part of a larger set-up.
  std::span<T> buffer(set_up_type& together) {
    if (!buffer_) make_buffer(together);
    return {*buffer_, setup_.length()};
  }

  /// Before a run for one of several calls: the others may mean another plan, or none.
  void meet(set_up_type& together) { together.meet(setup_.signature(), setup_.segments(), setup_.memory()); }

  const report& run(std::span<T> elements, const std::string& problem) {
    return finish(begin(elements, problem, false, "operator()"));
  }

  /// @param posts  whether the reduction goes on in test(), too
  engine_type& begin(std::span<T> elements, const std::string& problem, bool posts, const char* call) {
    require_usable(setup_.comm(), setup_.to().names().type);
    require_idle(call);
    require_no_reduction(setup_.comm(), setup_.to().names().member, call);
    auto& chosen = engine_for(elements);
    std::exception_ptr own_problem;
    if (!problem.empty() && !setup_.compares_in_runs())
      own_problem = exception_from([&] { return bad_input(problem); });
    if (setup_.meets_in_runs()) {
      auto mine = setup_.signature(elements.size(), problem);
      if (setup_.compares() && is_buffer(elements))
        mine.set(mine.location, of_plan);
      else if (setup_.compares() && &chosen == by_messages_.get())
        mine.set(mine.location, of_caller);
      chosen.start(elements.data(), posts, mine, setup_.memory(), std::move(own_problem));
    } else if (own_problem) {
      chosen.start_refusing(std::move(own_problem), posts);
    } else {
      chosen.start(elements.data(), posts);
    }
    in_flight_ = &chosen;
    set_reduction_in_flight(setup_.comm(), true);
    return chosen;
  }

  // See engine_interface.
  void set_pieces(std::size_t count) { in_flight("set_pieces").set_pieces(count); }
  void refuse(std::exception_ptr problem) { in_flight("refuse").refuse(std::move(problem)); }

  void require_idle(const char* call) const {
    if (in_flight_) throw bad_input(call_name(call) + ": a reduction is in flight; call wait() first");
  }
  engine_type& in_flight(const char* call) const {
    require_usable(setup_.comm(), setup_.to().names().type);
    if (!in_flight_) throw bad_input(call_name(call) + ": no reduction is in flight; call start() first");
    return *in_flight_;
  }

  const report& finish(engine_type& running) {
    in_flight_ = nullptr;
    set_reduction_in_flight(setup_.comm(), false);  // wait() ends it, well or not
    last_ = &running.wait();
    return *last_;
  }

 private:
  std::string call_name(const char* call) const { return std::string(setup_.to().names().member) + call; }
  static constexpr bool can_share = shares_gradients<Comm, Space>;
  static constexpr std::string_view of_caller = "in the caller's memory", copied = "copied to shared memory",
                                    of_plan = "in the plan's buffer";

  std::unique_ptr<engine_type> new_engine(engine_settings<typename setup_type::inner_rule> settings) {
    return detail::make_engine<T>(setup_.space(), setup_.comm(), rule_, setup_.segments(), std::move(settings));
  }

  /// Where the schedule cannot be built, its place is taken by messages.
  shared_memory_use shared_memory_use_of_schedule() const {
    return setup_.schedule_problem().empty() ? setup_.uses_shared_memory() : shared_memory_use::none;
  }

  void make_in_place(shared_memory_use use, set_up_type& together) {
    if (std::exchange(tried_to_share_, true) || use == shared_memory_use::none) return;
    if constexpr (can_share) {
      const bool all_of_them = use == shared_memory_use::preferred || use == shared_memory_use::buffer_if_all;
      if constexpr (requires { setup_.comm().all_share_memory(); })
        if (all_of_them) {
          meet(together);  // what follows may be collective
          if (!setup_.comm().all_share_memory()) return;
        }
      try {
        auto settings = setup_.settings(true);
        // The others have been told of a schedule that can be built: not of the one that takes its place.
        if (!setup_.schedule_problem().empty()) throw bad_input(setup_.schedule_problem());
        // Where a rule runs by sums of vectors, they are sent.
        if (runs_by_sums<Rule>(settings, setup_.comm().size())) return;
        settings.transport.before_sharing = [&](std::size_t bytes) {
          return together.meet(setup_.signature(), setup_.segments(), setup_.memory(), bytes);
        };
        in_place_ = new_engine(std::move(settings));
      } catch (const shared_memory_error&) {  // on all ranks: by messages, then
        if (use == shared_memory_use::required) throw;
        return;
      }
      if (all_of_them && setup_.comm().size() > 1 && !in_place_->is_in_place()) in_place_.reset();
    }
  }
  void require_in_place() const {
    if (setup_.comm().size() > 1 && (!in_place_ || !in_place_->is_in_place()))
      throw bad_input(std::string(setup_.call()) + ": " + std::string(Schedule::name) +
                      " needs ranks that all share memory");
  }

  /// If it fails, on all ranks, the plan is as it was.
  void make_buffer(set_up_type& together) {
    const bool shared_before = tried_to_share_;
    std::unique_ptr<engine_type> messages;
    try {
      setup_.begin_buffer();
      make_in_place(shared_memory_use_of_schedule(), together);
      T* memory = usual().shared_gradient();
      if (!memory) {
        if (!own_memory_) own_memory_ = setup_.space().template allocate<T>(setup_.length());
        memory = own_memory_->data();
      } else if (!by_messages_) {
        // From now on a gradient of the caller's is reduced by messages, since that memory is the caller's, too.
        messages = new_engine(setup_.settings(false));
      }
      meet(together);
      buffer_ = memory;
    } catch (...) {
      if (!shared_before) in_place_.reset();
      tried_to_share_ = shared_before;
      throw;
    }
    if (messages) by_messages_ = std::move(messages);
  }

  /// What reduces a plan's gradients, unless they lie elsewhere than in buffer().
  engine_type& usual() { return in_place_ ? *in_place_ : *by_messages_; }
  bool is_buffer(std::span<const T> elements) const { return buffer_ && elements.data() == *buffer_; }
  engine_type& engine_for(std::span<const T> elements) {
    return in_place_ && (is_buffer(elements) || !by_messages_) ? *in_place_ : *by_messages_;
  }

  setup_type setup_;
  Rule rule_;                              // of both engines
  std::optional<buffer_type> own_memory_;  // for buffer(), where ranks share none; a reduction may still use it
  std::unique_ptr<engine_type> in_place_;  // in shared memory
  std::unique_ptr<engine_type> by_messages_;
  bool tried_to_share_ = false;
  std::optional<T*> buffer_;
  engine_type* in_flight_ = nullptr;
  const report* last_ = nullptr;
};

/// Destroys a plan. But where this rank has given up waiting for another, messages may still be in flight, and MPI may
/// write to memory of the plan at any time: then that stays for good.
struct plan_deleter {
  template <class State>
  void operator()(State* plan) const noexcept {
    plan->abandon();
    if (!gave_up(plan->setup().comm())) delete plan;
  }
};

}  // namespace adasum::detail
