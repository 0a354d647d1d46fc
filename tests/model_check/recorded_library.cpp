// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of the library's that do what the model's ranks do, recorded.
#include "recorded_access.hpp"

namespace adasum::test::model {
/// What the library holds the memory of ranks by. (Ahead of plan.hpp, which has it do so.)
template <>
inline constexpr bool is_recorded<detail::any_window> = true;
}  // namespace adasum::test::model

#include <adasum/core/options.hpp>
#include <adasum/plan.hpp>
#include <adasum/rules/adasum.hpp>
#include <adasum/rules/sum.hpp>
#include <adasum/schedules/shared_memory.hpp>
#include <adasum/testing/simulated_communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "record.hpp"
#include "recorded_reductions.hpp"
#include "recorded_space.hpp"

namespace adasum::test::model {

namespace {

/// What simulated ranks share, who pose as threads or as processes.
template <bool one_address_space>
struct recorded_memory : simulated_communicator::memory {
  static constexpr bool same_address_space = one_address_space;
};
template <bool one_address_space>
struct recorded_communicator : simulated_communicator {
  recorded_communicator(const simulated_communicator& comm) : simulated_communicator(comm) {}
  recorded_memory<one_address_space> share(std::size_t bytes) const { return {simulated_communicator::share(bytes)}; }
};

/// Stages as in the scenario.
struct staged_for {
  static constexpr std::string_view name = "staged_for";
  static constexpr bool supports_gram_rules = true;
  work what = work::in_place;
  friend bool operator==(const staged_for&, const staged_for&) = default;

  /// Where ranks stay behind, the library works in memory in the plan's buffer only.
  shared_memory_use uses_shared_memory(int, const schedule_input&) const {
    return what == work::behind ? shared_memory_use::buffer : shared_memory_use::required;
  }
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    if (what != work::behind) {
      const std::size_t radix = what == work::levels ? 2 : 8;
      return schedules::shared_memory{radix}.stages(rank, size, input);
    }
    const auto self = static_cast<std::size_t>(rank), first = self / 2 * 2;
    const index_range all{0, input.length}, begin{0, input.length / 2}, end{begin.end, input.length};
    const int even = rank / 2 * 2;
    std::vector<stage> found{
        {{even, even + 1}, self % 2, {first, first + 1, first + 2}, 1, all, {all}, {even}, false, false, true}};
    if (rank == even) found.push_back({{0, 2}, first / 2, {0, 2, 4}, 2, all, {begin, end}, {0, 2}, false, false, true});
    return found;
  }
};

/// Of slices so long that gradients are not published as copies; or of those that are.
std::size_t length_of_slice(const scenario& one) { return one.what == work::copies ? 4 : 1200; }

/// What goes wrong on a rank in one run.
struct trouble {
  failing_call call{};
  std::size_t impatient_at = 0;  // the number of a wait
  bool wrong_length = false;     // of the gradient
};
/// So that a rank fails where a scenario says.
/// @param ordinary  what it does in a run in which nothing goes wrong
trouble trouble_at(const scenario& one, point where, const sequence& ordinary) {
  using kind = failing_call::kind;
  const auto waits_until = [&](auto end) {
    return static_cast<std::size_t>(std::count(ordinary.begin(), end, "waits"));
  };
  const auto first_sum =
      std::ranges::find_if(ordinary, [](const std::string& line) { return line.starts_with("contributes"); });
  const bool by_levels = one.what == work::levels || one.what == work::behind;
  switch (where) {
    case point::none: return {};
    case point::before_first: return {{}, 0, true};
    case point::after_first: return {{kind::measure_or_mix, 1}};
    case point::after_sum: return {{kind::mix, one.what == work::behind ? std::size_t{2} : 1}};
    case point::before_last: return {{kind::copy, by_levels ? 2 : one.ranks - 1}};
    case point::impatient_first: return {{}, 1};
    case point::impatient_sum: return {{}, waits_until(first_sum) + 1};
    case point::impatient_last: return {{}, waits_until(ordinary.end())};
  }
  return {};
}

/// Where the model adds more than once, gradients nearly cancel, and are combined vector by vector.
double element_of(const scenario& one, std::size_t rank, std::size_t x) {
  const bool cancel = one.what == work::sums || (one.what == work::levels && rank < 2);
  if (!cancel) return static_cast<double>((x * 7 + rank * 3) % 11);
  const auto length = static_cast<double>(x % 13 + 1);
  return rank % 2 == 0 ? length : -length * (1 + 1e-13 * static_cast<double>(rank));
}

/// @param ordinary  see trouble_at
template <bool one_address_space, class Rule>
void reduce(const scenario& one, const simulated_communicator& simulated, const Rule& rule, const sequence& ordinary) {
  const recorded_communicator<one_address_space> comm(simulated);
  const auto self = static_cast<std::size_t>(comm.rank());
  trouble what;
  recorded_space space;
  space.failing = &what.call;
  const std::size_t length = length_of_slice(one) * one.ranks;
  constexpr basic_options<false> choices{.measure = measuring::when_needed};
  auto plan = plan_allreduce<double>(space, comm, length, rule, staged_for{one.what}, choices);
  std::vector<double> own(length);
  const auto gradient = one.what == work::behind ? plan.buffer() : std::span(own);
  for (std::size_t run = 1; run <= one.runs; ++run) {
    if (one.leaves.rank == self && one.leaves.after < run) return;
    for (std::size_t x = 0; x < length; ++x) gradient[x] = element_of(one, self, x);
    for (const auto& each : one.faults)
      if (each.where != point::none && each.rank == self && each.run == run)
        what = trouble_at(one, each.where, ordinary);
    recording::current->impatient_at = std::exchange(what.impatient_at, 0);
    try {
      const auto given = gradient.first(length - std::exchange(what.wrong_length, false));
      if (one.blocking) {
        plan(given);
        continue;
      }
      plan.start(given);
      while (!plan.test()) std::this_thread::yield();
      plan.wait();
    } catch (const std::exception&) {  // what came of it is recorded
    }
  }
}

}  // namespace

recorded record_library(const scenario& one, const recorded& without_faults) {
  return record(one, length_of_slice(one) * sizeof(double), [&](const simulated_communicator& comm) {
    const auto self = static_cast<std::size_t>(comm.rank());
    const auto ordinary = without_faults.ranks.empty() ? sequence() : without_faults.ranks[self].at(1);
    if (!one.one_address_space)
      reduce<false>(one, comm, rules::adasum{}, ordinary);
    else if (one.what == work::unmeasured)
      reduce<true>(one, comm, rules::sum{}, ordinary);
    else
      reduce<true>(one, comm, rules::adasum{}, ordinary);
  });
}

}  // namespace adasum::test::model
