// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../../core/deferred_error.hpp"
#include "../../core/error.hpp"
#include "../../core/options.hpp"
#include "../../core/report.hpp"
#include "../../core/scalar.hpp"
#include "../../core/stage.hpp"
#include "../references/space_ref.hpp"
#include "call_signature.hpp"
#include "destination.hpp"
#include "engine_settings.hpp"
#include "joint_set_up.hpp"
#include "plan_inputs.hpp"
#include "reduction.hpp"
#include "stage_executor.hpp"

namespace adasum::detail {

/// What an allreduce_plan holds: the inputs, up to two executors (one works in memory that the ranks share, one sends
/// messages), and which of them is at work.
class plan final : public reduction {
 public:
  /// As a part of a larger set-up.
  plan(const plan_arguments& given, joint_set_up& together) : inputs_(given) {
    if (inputs_.choices().wire != wire_format::same && inputs_.space().packing() == nullptr)
      throw bad_input(std::string(given.call) +
                      ": options::wire needs float gradients and an execution space that rounds them; here the "
                      "elements are " +
                      std::string(to_string(given.space.format())) + " and the space is " +
                      std::string(given.space.name()));
    inputs_.learn_shards(of_caller, [&] { meet(together); });
    auto by_messages = inputs_.settings(false);  // tells what is wrong with the schedule
    const auto use = inputs_.uses_shared_memory();
    const bool shares = use == shared_memory_use::preferred && comm().can_share();
    inputs_.prepare_agreement(shares ? copied : of_caller);
    if (shares || use == shared_memory_use::required) make_in_place(use, together);
    if (!in_place_) by_messages_ = new_executor(std::move(by_messages));
    if (use == shared_memory_use::required) require_in_place();
    last_ = &usual().last_report();
    meet(together);
    if (inputs_.purpose() == plan_purpose::kept) inputs_.begin_runs();
  }
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;
  ~plan() override { abandon(); }

  void abandon() noexcept override {
    if (auto* const running = std::exchange(in_flight_, nullptr)) {
      comm().set_reduction_in_flight(false);
      running->abandon();
    }
  }
  bool must_stay() const override { return comm().gave_up(); }
  bool is_for(const plan_arguments& call) const override { return inputs_.is_for(call); }
  segments_view segments() const override { return inputs_.segments(); }
  destination to() const override { return inputs_.to(); }
  index_range wanted() const override { return inputs_.wanted(); }
  const report& last_report() const override { return *last_; }
  bool is_in_flight() const override { return in_flight_ != nullptr; }

  std::byte* buffer(const char* call) override {
    if (!buffer_) {
      require_idle(call);
      joint_set_up(inputs_.to().names().buffer, comm(), inputs_.compares()).run([&](joint_set_up& together) {
        make_buffer(together);
      });
    }
    return *buffer_;
  }
  std::byte* buffer(joint_set_up& together) override {
    if (!buffer_) make_buffer(together);
    return *buffer_;
  }

  void meet(joint_set_up& together) override {
    together.meet(inputs_.signature(), inputs_.segments(), inputs_.memory());
  }

  // ── a run ──
  std::string problem_with(const std::byte* elements, std::size_t count) const override {
    return inputs_.problem_with(elements, count, inputs_.to().names().type);
  }
  const report& run(std::byte* elements, std::size_t count, const std::string& problem) override {
    begin(elements, count, problem, false, "operator()");
    return wait();
  }
  void start(std::byte* elements, std::size_t count, const std::string& problem) override {
    const bool posts = comm().can_post();
    begin(elements, count, problem, posts, "start");
    if (posts) in_flight_->test();
  }
  bool test() override {
    auto& running = in_flight("test");
    return comm().can_post() ? running.test() : running.finish_run();
  }
  const report& wait() override {
    auto& running = in_flight("wait");
    in_flight_ = nullptr;
    comm().set_reduction_in_flight(false);  // wait() ends it, well or not
    last_ = &running.wait();
    return *last_;
  }

 private:
  static constexpr std::string_view of_caller = "in the caller's memory", copied = "copied to shared memory",
                                    of_plan = "in the plan's buffer";

  const communicator_ref& comm() const { return inputs_.comm(); }
  std::string call_name(const char* call) const { return std::string(inputs_.to().names().member) + call; }
  std::unique_ptr<stage_executor> new_executor(engine_settings settings) {
    const auto& schedule = inputs_.schedule();
    return std::make_unique<stage_executor>(inputs_.space(), comm(), inputs_.rule(), schedule.inner_rule(),
                                            schedule.has_inner_rule(), inputs_.segments(), std::move(settings));
  }

  void require_idle(const char* call) const {
    if (in_flight_) throw bad_input(call_name(call) + ": a reduction is in flight; call wait() first");
  }
  stage_executor& in_flight(const char* call) const {
    comm().require_usable(inputs_.to().names().type);
    if (!in_flight_) throw bad_input(call_name(call) + ": no reduction is in flight; call start() first");
    return *in_flight_;
  }
  /// @param posts  whether the reduction goes on in test(), too
  void begin(std::byte* elements, std::size_t count, const std::string& problem, bool posts, const char* call) {
    comm().require_usable(inputs_.to().names().type);
    require_idle(call);
    require_no_reduction(comm(), inputs_.to().names().member, call);
    auto& chosen = executor_for(elements);
    std::exception_ptr own_problem;
    if (!problem.empty() && !inputs_.compares_in_runs())
      own_problem = exception_from([&] { return bad_input(problem); });
    if (inputs_.meets_in_runs()) {
      auto mine = inputs_.signature(count, problem);
      if (inputs_.compares() && is_buffer(elements))
        mine.set(mine.location, of_plan);
      else if (inputs_.compares() && &chosen == by_messages_.get())
        mine.set(mine.location, of_caller);
      chosen.start(elements, posts, mine, inputs_.memory(), std::move(own_problem));
    } else if (own_problem) {
      chosen.start_refusing(own_problem, posts);
    } else {
      chosen.start(elements, posts);
    }
    in_flight_ = &chosen;
    comm().set_reduction_in_flight(true);
  }

  void make_in_place(shared_memory_use use, joint_set_up& together) {
    if (std::exchange(tried_to_share_, true) || use == shared_memory_use::none || !comm().can_share()) return;
    const bool all_of_them = use == shared_memory_use::preferred || use == shared_memory_use::buffer_if_all;
    if (all_of_them && comm().knows_who_shares()) {
      meet(together);  // what follows may be collective
      if (!comm().all_share_memory()) return;
    }
    try {
      auto settings = inputs_.settings(true);
      // The others have been told of a schedule that can be built: not of the one that takes its place.
      if (!inputs_.schedule_problem().empty()) throw bad_input(inputs_.schedule_problem());
      settings.transport.before_sharing = [&](std::size_t bytes) {
        return together.meet(inputs_.signature(), inputs_.segments(), inputs_.memory(), bytes);
      };
      in_place_ = new_executor(std::move(settings));
    } catch (const shared_memory_error&) {  // on all ranks: by messages, then
      if (use == shared_memory_use::required) throw;
      return;
    }
    if (all_of_them && comm().size() > 1 && !in_place_->is_in_place()) in_place_.reset();
  }
  void require_in_place() const {
    if (comm().size() > 1 && (!in_place_ || !in_place_->is_in_place()))
      throw bad_input(std::string(inputs_.call()) + ": " + std::string(inputs_.schedule().name()) +
                      " needs ranks that all share memory");
  }

  /// If it fails, on all ranks, the plan is as it was.
  void make_buffer(joint_set_up& together) {
    const bool shared_before = tried_to_share_;
    std::unique_ptr<stage_executor> by_messages;
    try {
      inputs_.begin_buffer();
      make_in_place(inputs_.uses_shared_memory(), together);
      std::byte* memory = usual().shared_gradient();
      if (!memory) {
        if (!own_memory_) own_memory_.emplace(inputs_.space().allocate(inputs_.length()));
        memory = own_memory_->data();
      } else if (!by_messages_) {
        // From now on a gradient of the caller's is reduced by messages, since that memory is the caller's, too.
        by_messages = new_executor(inputs_.settings(false));
      }
      meet(together);
      buffer_ = memory;
    } catch (...) {
      if (!shared_before) in_place_.reset();
      tried_to_share_ = shared_before;
      throw;
    }
    if (by_messages) by_messages_ = std::move(by_messages);
  }

  /// What reduces a plan's gradients, unless they lie elsewhere than in buffer().
  stage_executor& usual() { return in_place_ ? *in_place_ : *by_messages_; }
  bool is_buffer(const std::byte* elements) const { return buffer_ && elements == *buffer_; }
  stage_executor& executor_for(const std::byte* elements) {
    return in_place_ && (is_buffer(elements) || !by_messages_) ? *in_place_ : *by_messages_;
  }

  plan_inputs inputs_;
  std::optional<space_memory> own_memory_;    // for buffer(), where ranks share none; a reduction may still use it
  std::unique_ptr<stage_executor> in_place_;  // in shared memory
  std::unique_ptr<stage_executor> by_messages_;
  bool tried_to_share_ = false;
  std::optional<std::byte*> buffer_;
  stage_executor* in_flight_ = nullptr;
  const report* last_ = nullptr;
};

#if ADASUM_DEFINITIONS
ADASUM_INLINE std::unique_ptr<reduction> new_reduction(const plan_arguments& given, joint_set_up& together) {
  return std::make_unique<plan>(given, together);
}
#endif

}  // namespace adasum::detail
