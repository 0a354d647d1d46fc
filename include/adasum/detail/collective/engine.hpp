// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/concepts.hpp"
#include "../../core/deferred_error.hpp"
#include "../../core/error.hpp"
#include "../../core/report.hpp"
#include "agreement.hpp"
#include "engine_settings.hpp"
#include "run_of_stages.hpp"
#include "run_of_sums.hpp"
#include "steps.hpp"
#include "transport/transport.hpp"

namespace adasum::detail {

/// What a plan asks of an engine. Behind it is nothing that depends on a plan's schedule, so that one engine serves plans
/// of all schedules, and can be compiled once (make_engine).
template <scalar T>
class engine_interface {
 public:
  virtual ~engine_interface() = default;

  /// This rank's gradient in shared memory; null if there is none.
  virtual T* shared_gradient() const = 0;
  /// Whether no stage sends elements.
  virtual bool is_in_place() const = 0;
  virtual const report& last_report() const = 0;

  /// Begins to reduce the gradient at `data` in place. Each start is followed by one wait().
  /// @param posts  whether the run is to go on in test(); otherwise nothing happens before wait()
  virtual void start(T* data, bool posts) = 0;
  /// The same, but first all ranks tell each other what they are about to do.
  /// @param memory   until wait() has returned; if it is empty, ranks that differ do not find out in what
  /// @param problem  what this rank throws if `mine` has a problem, in place of what all ranks throw; or null
  virtual void start(T* data, bool posts, const call_signature& mine, agreement_memory& memory,
                     std::exception_ptr problem) = 0;
  /// Takes no part in a reduction that the other ranks begin; they get a communication_error, and this rank, from
  /// wait(), the given exception.
  virtual void start_refusing(std::exception_ptr problem, bool posts) = 0;

  /// Of a gradient that comes in pieces, the first so many are there: the run begun goes on with no others.
  virtual void set_pieces(std::size_t count) = 0;
  /// In a run begun: as start_refusing. May wait for the exchange in flight.
  virtual void refuse(std::exception_ptr problem) = 0;

  /// Goes on as far as it can without waiting. @return whether the run has ended, well or not: wait() will not block
  virtual bool test() = 0;
  /// The same, waiting. @return true, unless pieces are not there
  virtual bool finish_run() = 0;
  /// Returns when the result is there. @pre all pieces are
  /// If anything failed on this rank, the others have been told before the exception leaves, so that none of them waits.
  virtual const report& wait() = 0;

  /// In the middle of a run: withdraws from it, and returns when no other rank needs this one. What the destructor does.
  virtual void abandon() noexcept = 0;
};

/// Runs a schedule. A run is a list of steps (steps.hpp); where one has to wait for other ranks, the run blocks there,
/// or returns to the caller and goes on later: between the two there is no other difference. What is done in a step is
/// said by Run, which is run_of_stages or run_of_sums; here is where a run stands, and what becomes of one that fails.
template <scalar T, class Run>
class engine final : public engine_interface<T> {
 public:
  /// Collective with settings.in_shared_memory.
  /// @param rule, segments  must outlive this object
  template <class Space, class Comm, class Rule, class Settings>
  engine(Space space, Comm comm, Rule& rule, segments_view segments, Settings settings)
      : run_(std::move(space), std::move(comm), rule, segments, std::move(settings)),
        steps_(run_.steps()),
        at_(steps_.size()) {}
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() override { abandon(); }

  T* shared_gradient() const override { return run_.shared_gradient(); }
  bool is_in_place() const override { return run_.is_in_place(); }
  const report& last_report() const override { return run_.last_report(); }

  void start(T* data, bool posts) override {
    run_.prepare(data, posts);
    go_to(step_kind::begin);
  }
  void start(T* data, bool posts, const call_signature& mine, agreement_memory& memory,
             std::exception_ptr problem) override {
    run_.prepare(data, posts);
    run_.prepare_agreement(mine, memory);
    error_ = std::move(problem);
    go_to(step_kind::agree);
  }
  void start_refusing(std::exception_ptr problem, bool posts) override {
    start(nullptr, posts);
    run_.take(steps_[at_], 0);
    fail(std::move(problem));
  }

  void set_pieces(std::size_t count) override {
    if (!run_.withdrawn()) pieces_ = count;
  }
  void refuse(std::exception_ptr problem) override { give_up(problem); }

  bool test() override { return proceed(false); }
  bool finish_run() override { return proceed(true); }
  const report& wait() override {
    proceed(true);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return run_.last_report();
  }

  /// The gradient may be gone; what is in flight arrives in buffers that are still there.
  void abandon() noexcept override {
    if (ended()) return;
    give_up(exception_from([] { return communication_error("adasum: a reduction was abandoned"); }));
    proceed(true);
  }

 private:
  bool ended() const { return at_ == steps_.size(); }
  void go_to(step_kind kind) {
    at_ = 0;
    while (steps_[at_].kind < kind) ++at_;
    turn_ = pieces_ = 0;
    waits_ = false;
  }

  bool proceed(bool block) noexcept {
    return proceed(block, [](step_kind) { return true; });
  }

  /// Takes steps until the run has ended or, unless it may block, has to wait. @return whether it has ended
  /// @param may_begin  may_begin(kind): the steps that may be begun
  template <class MayBegin>
  bool proceed(bool block, const MayBegin& may_begin) noexcept {
    for (;;) {
      try {
        while (!ended() && (turn_ > 0 || (steps_[at_].pieces_needed <= pieces_ && may_begin(steps_[at_].kind)))) {
          if (waits_ && !run_.arrived(block)) return false;
          waits_ = run_.take(steps_[at_], turn_) == progress::waits;
          at_ += !waits_;
          turn_ = waits_ ? turn_ + 1 : 0;
        }
        return ended();
      } catch (const nonfinite_error&) {  // on every rank
        end(std::current_exception());
      } catch (const timeout_error& late) {
        stop(exception_from([&] {
          return timeout_error(std::string(late.what()) + ", in " + describe(steps_[at_].kind), late.rank());
        }));
      } catch (...) {
        stop(std::current_exception());
      }
    }
  }

  void stop(std::exception_ptr problem) noexcept {
    steps_[at_].kind == step_kind::agree ? end(std::move(problem)) : fail(std::move(problem));
  }

  /// The run is over, with an exception if there is one.
  void end(std::exception_ptr problem) {
    if (!error_) error_ = std::move(problem);
    at_ = steps_.size();
    waits_ = false;
  }

  /// Something failed: walks through all the steps again, which skips the exchanges that were made and makes the others
  /// with empty messages. Nobody waits for this rank then; what it gets is thrown away.
  void fail(std::exception_ptr problem) noexcept {
    if (run_.withdrawn()) return end(nullptr);
    // Others may have heard of this rank's failure, and failed, before this rank was done with telling them.
    const auto first = run_.reason_to_give_up();
    error_ = first ? first : std::move(problem);
    run_.withdraw();
    go_to(step_kind::exclude);
    pieces_ = std::numeric_limits<std::size_t>::max();
  }

  /// In the middle of a run, which goes on as one that has failed. What is in flight is ended first.
  void give_up(const std::exception_ptr& problem) noexcept {
    run_.give_up(problem);
    // Before these steps, nothing can be withheld.
    proceed(true, [](step_kind kind) { return kind == step_kind::agree || kind == step_kind::begin; });
    // Who has added inner products finds out whether all ranks recombine segments, and takes part in that until all of
    // them know that it has failed.
    proceed(true, [](step_kind kind) { return kind == step_kind::weigh || kind == step_kind::combine; });
    if (!ended() && !run_.withdrawn()) fail(problem);
  }

  Run run_;
  std::vector<step> steps_;
  std::size_t at_;          // the step
  std::size_t turn_ = 0;    // how often it has waited
  std::size_t pieces_ = 0;  // how many are there, of a gradient that comes in pieces
  bool waits_ = false;      // whether it waits now
  std::exception_ptr error_;
};

/// Collective with settings.in_shared_memory. Not inline: where it is declared extern, it is compiled elsewhere
/// (compiled.hpp), and everything below with it.
/// @param rule, segments  must outlive the engine
template <scalar T, class Space, class Comm, class Rule, class Inner>
std::unique_ptr<engine_interface<T>> make_engine(const Space& space, const Comm& comm, Rule& rule,
                                                 segments_view segments, engine_settings<Inner> settings) {
  if constexpr (can_run_by_sums<Rule, Inner>)
    if (runs_by_sums<Rule>(settings, comm.size()))
      return std::make_unique<engine<T, run_of_sums<T, Space, Comm, Rule>>>(space, comm, rule, segments,
                                                                            std::move(settings));
  return std::make_unique<engine<T, run_of_stages<T, Space, Comm, Rule, Inner>>>(space, comm, rule, segments,
                                                                                 std::move(settings));
}

}  // namespace adasum::detail
