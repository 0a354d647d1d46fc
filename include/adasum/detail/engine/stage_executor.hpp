// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/tracing.hpp"
#include "../references/erased.hpp"
#include "agreement.hpp"
#include "engine_settings.hpp"
#include "stage_actions.hpp"

namespace adasum::detail {

/// Runs a schedule. A run is a list of steps (bound_stages.hpp); where one has to wait for other ranks, the run blocks there,
/// or returns to the caller and goes on later: between the two there is no other difference. What is done in a step is
/// said by stage_actions; here is where a run stands, and what becomes of one that fails.
class stage_executor {
 public:
  /// Collective with settings.transport.in_shared_memory.
  explicit stage_executor(engine_settings settings)
      : actions_(std::move(settings)), steps_(actions_.steps()), at_(steps_.size()) {}
  stage_executor(const stage_executor&) = delete;
  stage_executor& operator=(const stage_executor&) = delete;
  ~stage_executor() { abandon(); }

  /// This rank's gradient in shared memory; null if there is none.
  std::byte* shared_gradient() const { return actions_.shared_gradient(); }
  /// Whether no stage sends elements.
  bool is_in_place() const { return actions_.is_in_place(); }
  /// After an exception of wait(): whether some ranks may have been about to do something else.
  bool did_not_agree() const { return did_not_agree_; }
  const report& last_report() const { return actions_.last_report(); }

  /// Begins to reduce the gradient at `data` in place. Each start is followed by one wait().
  /// @param posts  whether the run is to go on in test(); otherwise nothing happens before wait()
  void start(std::byte* data, bool posts) {
    actions_.prepare(data, posts);
    go_to(step_kind::begin);
  }
  /// The same, but first all ranks tell each other what they are about to do.
  /// @param mine, memory  until wait() has returned; if it is empty, ranks that differ do not find out in what
  /// @param is_usual whether ranks that meet in this run's first stage are about to do the same
  /// @param problem  what this rank throws if `mine` has a problem, in place of what all ranks throw; or null
  void start(std::byte* data, bool posts, hashed_signature mine, agreement_memory& memory, bool is_usual,
             std::exception_ptr problem) {
    actions_.prepare(data, posts);
    actions_.prepare_agreement(mine, memory, is_usual);
    error_ = std::move(problem);
    did_not_agree_ = false;
    go_to(step_kind::agree);
  }
  /// Takes no part in a reduction that the other ranks begin; they get a communication_error, and this rank, from
  /// wait(), the given exception.
  void start_refusing(const std::exception_ptr& problem, bool posts) {
    start(nullptr, posts);
    actions_.take(steps_[at_], 0);
    fail(problem);
  }
  /// Goes on as far as it can without waiting. @return whether the run has ended, well or not: wait() will not block
  bool test() { return proceed(false); }
  /// The same, waiting.
  bool finish_run() { return proceed(true); }
  /// Returns when the result is there.
  /// If anything failed on this rank, the others have been told before the exception leaves, so that none of them waits.
  const report& wait() {
    proceed(true);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return actions_.last_report();
  }
  /// In the middle of a run: withdraws from it, and returns when no other rank needs this one. The gradient may be gone;
  /// what is in flight arrives in buffers that are still there.
  void abandon() noexcept {
    if (ended()) return;
    give_up(exception_from([] { return communication_error("adasum: a reduction was abandoned"); }));
    proceed(true);
  }

 private:
  bool ended() const { return at_ == steps_.size(); }
  void go_to(step_kind kind) {
    at_ = 0;
    while (steps_[at_].kind < kind) ++at_;
    turn_ = 0;
    waits_ = false;
  }

  bool proceed(bool block) noexcept {
    return proceed(block, [](step_kind) { return true; });
  }
  /// Takes steps until the run has ended or, unless it may block, has to wait. @return whether it has ended
  /// @param may_begin  the steps that may be begun
  bool proceed(bool block, function_ref<bool(step_kind)> may_begin) noexcept {
    const tracer* const told = active_tracer;
    for (;;) {
      try {
        while (!ended() && (turn_ > 0 || may_begin(steps_[at_].kind))) {
          if (waits_ && !arrived(block, told)) return false;
          const auto& now = steps_[at_];
          const trace_range range(told, name_of(now.kind), now.stage);
          waits_ = actions_.take(now, turn_) == progress::waits;
          at_ += !waits_;
          turn_ = waits_ ? turn_ + 1 : 0;
        }
        return ended();
      } catch (const ranks_differ&) {
        actions_.take_back();
        go_to(step_kind::agree);
      } catch (const timeout_error& late) {
        stop(exception_from(
            [&] { return timeout_error({late.what(), ", in ", describe(steps_[at_].kind)}, late.rank()); }));
      } catch (...) {
        stop(std::current_exception());
      }
    }
  }
  bool arrived(bool block, const tracer* told) {
    const trace_range range(block ? told : nullptr, "wait", steps_[at_].stage);
    return actions_.arrived(block);
  }
  void stop(const std::exception_ptr& problem) noexcept {
    if (steps_[at_].kind != step_kind::agree) return fail(problem);
    did_not_agree_ = true;
    end(problem);
  }
  /// The run is over, with an exception if there is one.
  void end(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
    at_ = steps_.size();
    waits_ = false;
  }
  /// Something failed: walks through all the steps again, which skips the exchanges that were made and makes the others
  /// with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void fail(const std::exception_ptr& problem) noexcept {
    if (actions_.withdrawn()) return end(nullptr);
    // Others may have heard of this rank's failure, and failed, before this rank was done with telling them.
    const auto first = actions_.reason_to_give_up();
    error_ = first ? first : problem;
    did_not_agree_ = !actions_.withdraw();
    go_to(step_kind::exclude);
  }
  /// In the middle of a run, which goes on as one that has failed. What is in flight is ended first.
  void give_up(const std::exception_ptr& problem) noexcept {
    actions_.give_up(problem);
    // Before these steps, nothing can be withheld.
    proceed(true, [](step_kind kind) { return kind == step_kind::agree || kind == step_kind::begin; });
    // Who has added inner products finds out whether all ranks recombine segments, and takes part in that until all of
    // them know that it has failed.
    proceed(true, [](step_kind kind) { return kind == step_kind::combine; });
    if (!ended() && !actions_.withdrawn()) fail(problem);
  }

  stage_actions actions_;
  std::vector<step> steps_;
  std::size_t at_;        // the step
  std::size_t turn_ = 0;  // how often it has waited
  bool waits_ = false;    // whether it waits now
  std::exception_ptr error_;
  bool did_not_agree_ = false;
};

}  // namespace adasum::detail
