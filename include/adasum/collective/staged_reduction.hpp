// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/report.hpp"
#include "agreement.hpp"
#include "reduction_settings.hpp"
#include "stage_actions.hpp"
#include "steps.hpp"

namespace adasum::detail {

/// Runs a schedule. A run is a list of steps (steps.hpp); where one has to wait for other ranks, the run blocks there,
/// or returns to the caller and goes on later: between the two there is no other difference. What is done in a step,
/// and what it waits for, is said by stage_actions; here is where a run stands, and what becomes of one that fails.
template <scalar T, execution_space<T> Space, communicator_for<Space> Comm, rule Rule, rule Inner = no_inner_rule>
class staged_reduction {
 public:
  /// @param rule, segments  must outlive this object
  staged_reduction(Space space, Comm comm, Rule& rule, segments_view segments, reduction_settings<Inner> settings)
      : actions_(std::move(space), std::move(comm), rule, segments, std::move(settings)) {}

  staged_reduction(const staged_reduction&) = delete;
  staged_reduction& operator=(const staged_reduction&) = delete;
  /// In the middle of a run: withdraws from it, and returns when no other rank needs this one.
  ~staged_reduction() {
    if (!ended()) abandon();
  }

  /// Makes memory that the ranks share, for stages to work in. Collective.
  void share_memory()
    requires shared_memory_communicator<Comm>
  {
    actions_.share_memory();
    steps_ = actions_.steps();
    at_ = steps_.size();
  }

  /// This rank's gradient in shared memory; null if there is none.
  T* shared_gradient() const { return actions_.shared_gradient(); }

  /// Whether every stage works on shared memory alone.
  bool is_direct() const { return actions_.is_direct(); }

  /// Begins to reduce the gradient at `data` in place. Each start is followed by one wait().
  /// @param posts  whether the run is to go on in test(); otherwise nothing happens before wait()
  void start(T* data, bool posts) {
    actions_.prepare(data, posts);
    go_to(step_kind::begin);
  }

  /// The same, but first all ranks tell each other what they intend.
  /// @param mine   what this one does; it is copied
  /// @param all    room for what all do, until wait() has returned
  void start(T* data, bool posts, const intention& mine, std::span<intention> all) {
    start(data, posts);
    actions_.prepare_agreement(mine, all);
    go_to(step_kind::agree);
  }

  /// Takes no part in a reduction that the other ranks begin; they get a communication_error, and this rank, from
  /// wait(), the given exception.
  void start_refusing(std::exception_ptr problem, bool posts) {
    start(nullptr, posts);
    actions_.take(steps_[at_], 0);
    fail(std::move(problem));
  }

  /// Goes on as far as it can without waiting. @return whether the run has ended, well or not: wait() will not block
  bool test() { return proceed(false); }

  /// Returns when the result is there. If anything failed on this rank, the others have been told before the exception
  /// leaves, so that none of them waits.
  const report& wait() {
    proceed(true);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return actions_.last_report();
  }

  const report& last_report() const { return actions_.last_report(); }

 private:
  bool ended() const { return at_ == steps_.size(); }
  void go_to(step_kind kind) {
    at_ = 0;
    while (steps_[at_].kind < kind) ++at_;
    turn_ = 0;
    waiting_ = waiting::nothing;
  }

  /// Takes steps until the run has ended or, unless it may block, has to wait. @return whether it has ended
  bool proceed(bool block) noexcept { return proceed(block, steps_.size()); }

  /// The same as far as the step `last`.
  bool proceed(bool block, std::size_t last) noexcept {
    for (;;) {
      try {
        while (at_ < last) {
          if (waiting_ != waiting::nothing && !actions_.arrived(waiting_, block)) return false;
          waiting_ = actions_.take(steps_[at_], turn_);
          const bool done = waiting_ == waiting::nothing;
          at_ += done;
          turn_ = done ? 0 : turn_ + 1;
        }
        return true;
      } catch (const nonfinite_error&) {  // on every rank
        end(std::current_exception());
      } catch (...) {
        steps_[at_].kind == step_kind::agree ? end(std::current_exception()) : fail(std::current_exception());
      }
    }
  }

  /// The run is over, with an exception if there is one.
  void end(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
    at_ = steps_.size();
    actions_.end();
  }

  /// Something failed: walks through all the steps again, which skips the exchanges that were made and makes the others
  /// with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void fail(std::exception_ptr problem) noexcept {
    if (actions_.withdrawn()) return end(nullptr);
    error_ = std::move(problem);
    go_to(step_kind::take_part);
    try {
      waiting_ = actions_.withdraw();
    } catch (...) {  // no memory: the others wait for messages that cannot be sent
      end(nullptr);
    }
  }

  void abandon() noexcept {
    proceed(true, 2);  // agree and begin: until then, nothing can be withheld
    if (ended() || actions_.withdrawn()) return void(proceed(true));
    try {
      if (waiting_ == waiting::messages) actions_.arrived(waiting_, true);  // into buffers that are still there
    } catch (...) {
    }
    fail(std::make_exception_ptr(communication_error("adasum: a reduction was abandoned")));
    proceed(true);
  }

  stage_actions<T, Space, Comm, Rule, Inner> actions_;
  std::vector<step> steps_ = actions_.steps();
  std::size_t at_ = steps_.size();  // the step
  std::size_t turn_ = 0;            // how often it has waited
  waiting waiting_ = waiting::nothing;
  std::exception_ptr error_;
};

}  // namespace adasum::detail
