// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>

#include "case.hpp"
#include "expected.hpp"
#include "interrupted.hpp"
#include "support/allocations.hpp"
#include "tested_communicator.hpp"

/// What one rank of a case does, and what it saw.
namespace adasum::test {

/// How one step ended on one rank.
enum class simulated_end {
  not_there,
  returned,
  refused,
  disagreed,
  communication,
  not_finite,
  no_shared_memory,
  out_of_memory,
  failed,
  given_up,
  other
};

/// Of the exception that is being handled.
inline simulated_end end_by_exception(std::string& text) {
  const auto is = [&](simulated_end how, const std::exception& problem) {
    text = problem.what();
    return how;
  };
  try {
    throw;
  } catch (const bad_input& problem) {
    return is(simulated_end::refused, problem);
  } catch (const agreement_error& problem) {
    return is(simulated_end::disagreed, problem);
  } catch (const communication_error& problem) {
    return is(simulated_end::communication, problem);
  } catch (const nonfinite_error& problem) {
    return is(simulated_end::not_finite, problem);
  } catch (const shared_memory_error& problem) {
    return is(simulated_end::no_shared_memory, problem);
  } catch (const std::bad_alloc& problem) {
    return is(simulated_end::out_of_memory, problem);
  } catch (const simulated_failure& problem) {
    return is(simulated_end::failed, problem);
  } catch (const std::exception& problem) {
    return is(simulated_end::other, problem);
  }
}

template <scalar T>
struct simulated_step {
  simulated_end end = simulated_end::not_there;
  bool came = false;      ///< whether what was to go wrong did on this rank, in this step
  bool was_told = false;  ///< whether an exchange of this rank failed in it
  std::string text;       ///< of the exception
  std::vector<T> result;  ///< where it returned
  report found;
};

/// Two runs in which something may go wrong, and two in which nothing does.
inline constexpr std::size_t simulated_runs = 4, runs_with_trouble = 2;

template <scalar T>
struct simulated_record {
  simulated_step<T> set_up, set_up_again;
  std::array<simulated_step<T>, simulated_runs> runs;
  bool ran_out = false;          ///< whether an allocation failed
  bool wrote_elsewhere = false;  ///< beside the gradient
};

template <scalar T, class Rule>
class simulated_rank {
  using plan_type = allreduce_plan<T, interrupted_space, tested_communicator, Rule, chosen_order>;

 public:
  simulated_rank(const simulated_case& one, const simulated_input<T>& input, const simulated_communicator& comm,
                 simulated_record<T>& record)
      : case_(one),
        input_(input),
        comm_(comm),
        space_(comm),
        record_(record),
        is_culprit_(one.culprit == static_cast<std::uint64_t>(comm.rank())) {
    choices_.check_agreement = one.checked != 0;
    choices_.measure = one.when_needed != 0 ? measuring::when_needed : measuring::always;
    choices_.nonfinite = static_cast<nonfinite_policy>(one.nonfinite);
    choices_.wire = static_cast<wire_format>(one.wire);
    if (has(simulated_trouble::other_segments)) {
      auto lengths = random_segments(one.length, one.segments, one.data);
      lengths.push_back(0);
      other_cut_ = segments(lengths);
    }
  }

  void run() {
    comm_.arm(!case_.is_lost_in_run());
    if (case_.uses_plan() && !set_up()) return;
    comm_.arm(true);
    for (std::size_t number = 0; number < simulated_runs; ++number) {
      if (number == runs_with_trouble) comm_.arm(false);
      reduce(number);
      const auto end = record_.runs[number].end;
      const bool goes_on = end == simulated_end::returned || end == simulated_end::not_finite;
      if (case_.throwing_ranks_leave() && !goes_on) return;
      if (number == 0 && trouble() == simulated_trouble::abandoned && !set_up_again()) return;
    }
  }

 private:
  simulated_trouble trouble() const { return case_.what(); }
  bool has(simulated_trouble what) const { return is_culprit_ && trouble() == what; }

  // ── setting up ──

  bool set_up() {
    take_step(record_.set_up, 0, [&] { make_plan(has(simulated_trouble::other_segments) ? other_cut_ : input_.cut); });
    const bool good = record_.set_up.end == simulated_end::returned;
    if (case_.throwing_ranks_leave()) return good;
    if (comm_.all(good)) return true;
    comm_.arm(false);
    return set_up_again();
  }
  /// On all ranks, once all are done with the plan before.
  bool set_up_again() {
    comm_.all(true);
    plan_ = {};
    take_step(record_.set_up_again, never, [&] { make_plan(input_.cut); });
    return record_.set_up_again.end == simulated_end::returned;
  }
  void make_plan(const segments& cut) {
    plan_ = plan_allreduce<T>(space_, comm_, cut, rule(), order(), choices_);
    if (static_cast<simulated_call>(case_.call) == simulated_call::buffer) buffer_ = plan_.buffer();
  }
  Rule rule() const {
    if constexpr (requires { Rule{static_cast<const simulated_communicator&>(comm_)}; })
      return Rule{static_cast<const simulated_communicator&>(comm_)};
    else
      return Rule{};
  }
  chosen_order order() const { return {static_cast<simulated_order>(case_.order)}; }

  // ── a run ──

  void reduce(std::size_t number) {
    const auto& mine = input_.gradients[static_cast<std::size_t>(comm_.rank())];
    std::vector<T> memory(margin + mine.size() + margin);
    std::memset(static_cast<void*>(memory.data()), mark, memory.size() * sizeof(T));
    std::ranges::copy(mine, memory.begin() + margin);
    const bool wrong = number == 0 && has(simulated_trouble::bad_length);
    const std::span<T> gradient(memory.data() + margin, mine.size() + (wrong ? 1 : 0));

    auto& step = record_.runs[number];
    const report* found = nullptr;
    std::optional<report> of_single;
    planted_behind_gradient = memory.data() + margin + mine.size();
    take_step(step, number + 1, [&] { found = reduce(gradient, number, wrong, of_single); });
    planted_behind_gradient = nullptr;
    if (of_single) found = &*of_single;
    if (step.end == simulated_end::returned && found != nullptr) {
      step.found = *found;
      step.result.assign(gradient.begin(), gradient.end());
    } else if (step.end == simulated_end::returned) {
      step.end = simulated_end::given_up;
    }
    const auto untouched = [](std::span<const T> some) {
      return std::ranges::all_of(std::as_bytes(some), [](std::byte one) { return one == std::byte{mark}; });
    };
    const std::span<const T> all(memory);
    if (!untouched(all.first(margin)) || !untouched(all.last(margin))) record_.wrote_elsewhere = true;
  }

  const report* reduce(std::span<T> gradient, std::size_t number, bool wrong, std::optional<report>& of_single) {
    auto call = static_cast<simulated_call>(case_.call);
    if (call == simulated_call::single) {
      const auto& cut = number == 0 && has(simulated_trouble::other_segments) ? other_cut_ : input_.cut;
      of_single = combine_allreduce(space_, comm_, gradient, rule(), cut, order(), choices_);
      return nullptr;
    }
    if (number == 0 && has(simulated_trouble::abandoned)) return abandon(gradient);
    if (call == simulated_call::mixed)
      call = (comm_.rank() + static_cast<int>(number)) % 2 == 0 ? simulated_call::tested : simulated_call::plan;
    if (call == simulated_call::buffer && !wrong) {
      std::ranges::copy(gradient, buffer_.begin());
      const auto& found = plan_();
      std::ranges::copy(buffer_, gradient.begin());
      return &found;
    }
    if (call != simulated_call::tested) return &plan_(gradient);
    plan_.start(gradient);
    while (!plan_.test()) {
    }
    return &plan_.wait();
  }
  const report* abandon(std::span<T> gradient) {
    plan_.start(gradient);
    for (std::uint64_t tests = 0; tests < case_.at % 16; ++tests) plan_.test();
    plan_ = {};
    return nullptr;
  }

  // ── one step, in which allocations may fail ──

  template <class Call>
  void take_step(simulated_step<T>& step, std::size_t number, const Call& call) {
    const bool one = has(simulated_trouble::one_allocation), all = has(simulated_trouble::all_allocations);
    const bool came_before = comm_.fault_came();
    const auto failed_before = comm_.failed_exchanges();
    bool ran_out = false;
    try {
      std::optional<failing_allocations> failures;
      struct note {
        std::optional<failing_allocations>& failures;
        bool& ran_out;
        ~note() { ran_out = failures && failures->any(); }
      } const noted{failures, ran_out};
      const bool is_single = !case_.uses_plan() && number == 1;
      if ((one || all) && (number == case_.step || (is_single && case_.step == 0)))
        failures.emplace(case_.at, all ? failing_allocations::all : 1);
      call();
      step.end = simulated_end::returned;
    } catch (...) {
      step.end = end_by_exception(step.text);
      if (planted == plant::replaced_error && step.end == simulated_end::failed)
        step.end = simulated_end::communication;
      if (planted == plant::leak) leak_a_little();
    }
    record_.ran_out = record_.ran_out || ran_out;
    step.came = is_culprit_ && (ran_out || comm_.fault_came() != came_before);
    step.was_told = comm_.failed_exchanges() > failed_before;
  }

  static constexpr std::size_t never = 1000, margin = 8;
  static constexpr unsigned char mark = 0xC3;

  const simulated_case& case_;
  const simulated_input<T>& input_;
  tested_communicator comm_;
  interrupted_space space_;
  simulated_record<T>& record_;
  bool is_culprit_;
  options choices_;
  segments other_cut_;
  plan_type plan_;
  std::span<T> buffer_;
};

}  // namespace adasum::test
