// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "case.hpp"
#include "expected.hpp"
#include "late_failures.hpp"
#include "rank.hpp"
#include "support/bits.hpp"
#include "support/same_findings.hpp"
#include "verdict.hpp"

/// Runs a case, and says what is wrong with what its ranks saw.
namespace adasum::test {

template <scalar T>
class simulated_judge {
 public:
  simulated_judge(const simulated_case& one, const simulated_input<T>& input, const simulated_expectation& expected,
                  const std::vector<simulated_record<T>>& ranks, const simulated_run& run)
      : case_(one),
        input_(input),
        expected_(expected),
        ranks_(ranks),
        run_(run),
        may_fail_late_(may_fail_late(one, input)) {}

  std::string problem() {
    if (!run_.damage.empty()) return run_.damage;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].wrote_elsewhere) return "rank " + std::to_string(r) + " wrote beside its gradient";
    if (!run_.deadlock.empty() && !needed_a_timeout()) return "nobody can go on: " + run_.deadlock;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (run_.thrown[r]) return "rank " + std::to_string(r) + " threw where it should not";
    if (case_.uses_plan()) judge_set_up();
    for (std::size_t number = 0; number < simulated_runs; ++number) judge_run(number);
    if (problem_.empty() && steps_gone_wrong_ > most_steps_gone_wrong())
      note(std::to_string(steps_gone_wrong_) + " steps went wrong");
    return problem_;
  }
  bool needed_a_timeout() const {
    return !run_.deadlock.empty() && run_.fault_came && case_.may_need_a_timeout(run_.waits_unscheduled);
  }
  bool had_errors() const { return steps_gone_wrong_ > 0; }
  bool came() const {
    switch (trouble()) {
      case simulated_trouble::one_allocation:
      case simulated_trouble::all_allocations: return ranks_[case_.culprit].ran_out;
      case simulated_trouble::bad_length:
      case simulated_trouble::other_segments:
      case simulated_trouble::abandoned: return true;
      default: return run_.fault_came;
    }
  }

 private:
  using end = simulated_end;

  simulated_trouble trouble() const { return case_.what(); }
  /// Whether ranks have left: nothing need be right then but what is returned.
  bool some_left() const { return came() && case_.throwing_ranks_leave(); }

  std::size_t most_steps_gone_wrong() const {
    // A rank whose communicator is short of memory is asked once more, and makes its exchange.
    if (!came() || trouble() == simulated_trouble::short_of_memory || trouble() == simulated_trouble::late_look)
      return 0;
    return some_left() ? simulated_runs + 2 : 1;
  }

  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  /// What may happen to a rank where something goes wrong.
  bool may_end(std::size_t rank, end how) const {
    if (how == end::returned || how == end::communication || how == end::disagreed) return true;
    if (how == end::not_finite) return expected_.raises;
    if (how == end::no_shared_memory) return trouble() == simulated_trouble::no_shared_memory;
    if (rank != case_.culprit) return false;
    switch (trouble()) {
      case simulated_trouble::failing_point: return how == end::failed;
      case simulated_trouble::one_allocation:
      case simulated_trouble::all_allocations: return how == end::out_of_memory;
      case simulated_trouble::bad_length:
      case simulated_trouble::other_segments: return how == end::refused;
      case simulated_trouble::abandoned: return how == end::given_up;
      default: return false;
    }
  }

  /// @return whether all ranks returned
  template <class StepOf>
  bool judge_step(const std::string& name, const StepOf& step_of) {
    bool all = true;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const simulated_step<T>& step = step_of(ranks_[r]);
      all = all && step.end == end::returned;
      if (step.end == end::not_there && !some_left())
        note(name + ": rank " + std::to_string(r) + " did not come as far as that");
      else if (step.end != end::not_there && !may_end(r, step.end))
        note(name + ": rank " + std::to_string(r) + " threw: " + step.text);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      judge_error(name + ": rank " + std::to_string(r), step_of(ranks_[r]));
    judge_mixture(name, step_of);
    if (!all) {
      ++steps_gone_wrong_;
      if (!came()) note(name + " went wrong though nothing should: " + texts(step_of));
    }
    return all;
  }
  /// Whether an error of this rank's comes out, and is what it was.
  void judge_error(const std::string& name, const simulated_step<T>& step) {
    if (step.was_told && step.end == end::returned) note(name + " returned although an exchange of its own had failed");
    if (!step.came || (step.end == end::not_finite && expected_.raises)) return;
    switch (trouble()) {
      case simulated_trouble::failing_point:
        if (step.end != end::failed) note(name + " did not throw what its rule or space had thrown: " + step.text);
        break;
      case simulated_trouble::one_allocation:
      case simulated_trouble::all_allocations:
        if (step.end != end::out_of_memory && step.end != end::returned)  // it may do without
          note(name + " did not throw std::bad_alloc: " + step.text);
        break;
      default: break;
    }
  }
  /// Where some ranks have returned and others have thrown, the former must have needed nothing more of the latter.
  template <class StepOf>
  void judge_mixture(const std::string& name, const StepOf& step_of) {
    const auto returned = [&](const auto& rank) { return step_of(rank).end == end::returned; };
    const auto threw = [&](const auto& rank) { return !returned(rank) && step_of(rank).end != end::not_there; };
    const auto failed = std::ranges::count_if(ranks_, threw);
    if (failed == 0 || std::ranges::none_of(ranks_, returned)) return;
    const bool is_run = &step_of(ranks_[0]) != &ranks_[0].set_up;
    switch (trouble()) {
      // That may be as late as in the last exchange. Whom it reaches must throw, see judge_error; the others have all they need.
      case simulated_trouble::withheld_message:
      case simulated_trouble::departure:
      case simulated_trouble::cut_off:
      case simulated_trouble::abandoned: return;
      // What fails after the last exchange concerns the culprit alone.
      case simulated_trouble::one_allocation:
      case simulated_trouble::all_allocations:
        if (is_run && failed == 1 && threw(ranks_[case_.culprit])) return;
        break;
      default: break;
    }
    if (!is_run || !may_fail_late_) note(name + " failed on some ranks only:" + texts(step_of));
  }
  template <class StepOf>
  std::string texts(const StepOf& step_of) const {
    std::string all;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (const simulated_step<T>& step = step_of(ranks_[r]); step.end != end::returned)
        all += " [rank " + std::to_string(r) + "] " + step.text;
    return all;
  }

  void judge_set_up() {
    const auto first = [](const simulated_record<T>& rank) -> const simulated_step<T>& { return rank.set_up; };
    const auto again = [](const simulated_record<T>& rank) -> const simulated_step<T>& { return rank.set_up_again; };
    const bool good = judge_step("setting up", first);
    if (!good && some_left()) return;
    if ((!good || trouble() == simulated_trouble::abandoned) && !judge_step("setting up again", again) && !some_left())
      note("setting up again went wrong:" + texts(again));
  }

  void judge_run(std::size_t number) {
    const auto name = "run " + std::to_string(number + 1);
    const auto step_of = [&](const simulated_record<T>& rank) -> const simulated_step<T>& { return rank.runs[number]; };
    const auto raised = [&](const auto& rank) { return rank.runs[number].end == end::not_finite; };
    if (expected_.raises && std::ranges::all_of(ranks_, raised)) return;
    if (!judge_step(name, step_of) && number >= runs_with_trouble && !some_left())
      note(name + " after trouble went wrong:" + texts(step_of));
    const auto own = step_of(ranks_[case_.culprit]).end;
    const bool is_refused =
        own == end::refused || own == end::not_finite || (case_.checked != 0 && own == end::disagreed);
    if (number == 0 && trouble() == simulated_trouble::bad_length && !is_refused)
      note(name + ": a gradient of another length was not refused");
    const simulated_step<T>* same = nullptr;
    for (const auto& rank : ranks_) {
      const auto& step = rank.runs[number];
      if (step.end != end::returned) continue;
      if (expected_.raises) note(name + ": a rank returned where NaN is an error");
      if (same == nullptr) {
        same = &step;
        const auto wrong = problem_with(step.result, expected_, input_.cut, step.found);
        if (!wrong.empty()) note(name + ": " + wrong);
      } else if (!same_bits(step.result, same->result)) {
        note(name + ": ranks have different results");
      } else if (!same_findings(step.found, same->found)) {
        note(name + ": ranks have different reports");
      }
    }
    if (same == nullptr) return;
    if (before_ != nullptr && is_repeated() && !same_bits(same->result, before_->result))
      note(name + " gave another result than a run before");
    before_ = same;
  }
  /// Whether each run goes by the same plan.
  bool is_repeated() const {
    return case_.uses_plan() && trouble() != simulated_trouble::no_shared_memory && expected_.values.size() > 0;
  }

  const simulated_case& case_;
  const simulated_input<T>& input_;
  const simulated_expectation& expected_;
  const std::vector<simulated_record<T>>& ranks_;
  const simulated_run& run_;
  bool may_fail_late_;
  std::string problem_;
  std::size_t steps_gone_wrong_ = 0;
  const simulated_step<T>* before_ = nullptr;
};

template <scalar T, class Rule>
simulated_verdict run_case(const simulated_case& one) {
  const simulated_input<T> input(one);
  const auto expected = expectation_of<T, Rule>(one, input);
  std::vector<simulated_record<T>> ranks(one.ranks);
  simulation_settings settings{.seed = one.seed, .fault = {}, .nodes = input.nodes};
  if (one.trouble <= static_cast<std::uint64_t>(simulated_trouble::cut_off))
    settings.fault = {static_cast<simulated_fault::kind>(one.trouble), static_cast<int>(one.culprit), one.at};
  planted_case_may_time_out = one.what() != simulated_trouble::cut_off && one.may_need_a_timeout(true);
  const auto run = simulate(static_cast<int>(one.ranks), settings, [&](const simulated_communicator& comm) {
    auto& record = ranks[static_cast<std::size_t>(comm.rank())];
    simulated_rank<T, Rule>(one, input, comm, record).run();
  });
  simulated_judge<T> judge(one, input, expected, ranks, run);
  auto trace = run.trace;
  for (const auto& rank : ranks)
    for (const auto& step : rank.runs)
      for (const auto byte : std::as_bytes(std::span(step.result)))
        trace = detail::simulated::rng::mixed(trace ^ static_cast<std::uint64_t>(byte));
  simulated_verdict verdict{judge.problem(), judge.came(), judge.needed_a_timeout(), false, trace};
  verdict.had_errors = judge.had_errors();
  return verdict;
}

template <scalar T>
simulated_verdict run_case(const simulated_case& one) {
  switch (static_cast<simulated_rule>(one.rule)) {
    case simulated_rule::interrupted_adasum: return run_case<T, interrupted_adasum>(one);
    case simulated_rule::sum: return run_case<T, rules::sum>(one);
    case simulated_rule::mean: return run_case<T, rules::mean>(one);
    case simulated_rule::mean_of_units: return run_case<T, interrupted_mean_of_units>(one);
    case simulated_rule::adasum:
    case simulated_rule::count: break;
  }
  return run_case<T, rules::adasum>(one);
}

}  // namespace adasum::test
