// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/allreduce.hpp>
#include <adasum/bucketed.hpp>
#include <adasum/communicators/any.hpp>
#include <adasum/delta.hpp>
#include <adasum/plan.hpp>
#include <adasum/reduce_scatter.hpp>

#include "combination.hpp"

namespace adasum::test {

/// What one rank brings to a reduction.
template <scalar T>
struct own_gradient {
  std::vector<T> values;
  segments cut;
  std::optional<shard> place;
};

/// What one rank has afterwards: some elements of the result, and the report.
template <scalar T>
struct own_result {
  index_range elements;  ///< of the gradient
  std::vector<T> values;
  report found;
};

/// See reduce(). @tparam every_call  whether all of them are compiled, or plan_allreduce alone
template <scalar T, bool every_call, class Space, class Rule, class Schedule>
class one_reduction {
 public:
  one_reduction(const Space& space, const any_communicator& comm, const combination& one, const Rule& rule,
                const Schedule& schedule, const own_gradient<T>& mine)
      : space_(space), comm_(comm), one_(one), rule_(rule), schedule_(schedule), mine_(mine) {}

  own_result<T> run() {
    if constexpr (every_call) switch (one_.call) {
        case call_of_ranks::combine_allreduce: return single_call();
        case call_of_ranks::start: return started();
        case call_of_ranks::buffer: return in_buffer();
        case call_of_ranks::combine_reduce_scatter: return dealt_out_once();
        case call_of_ranks::plan_reduce_scatter: return dealt_out();
        case call_of_ranks::plan_bucketed: return in_buckets();
        case call_of_ranks::delta_allreduce: return of_steps();
        case call_of_ranks::plan_allreduce:
        case call_of_ranks::count: break;
      }
    auto gradient = mine_.values;
    auto plan = make_plan();
    const auto& found = plan(gradient);
    return all_of(std::move(gradient), found);
  }

 private:
  own_result<T> all_of(std::vector<T> values, const report& found) const {
    const auto length = values.size();
    return {{0, length}, std::move(values), found};
  }
  own_result<T> part_of(const std::vector<T>& values, index_range part, const report& found) const {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(part.begin);
    return {part, {begin, begin + static_cast<std::ptrdiff_t>(part.size())}, found};
  }
  auto make_plan() const {
    if (mine_.place) return plan_allreduce<T>(space_, comm_, mine_.cut, rule_, schedule_, one_.choices, *mine_.place);
    return plan_allreduce<T>(space_, comm_, mine_.cut, rule_, schedule_, one_.choices);
  }

  /// Twice, so that one that keeps its plan runs it again.
  own_result<T> single_call() const {
    std::optional<report> found;
    std::vector<T> gradient;
    for (int run = 0; run < 2; ++run) {
      gradient = mine_.values;
      found = mine_.place ? combine_allreduce(space_, comm_, gradient, mine_.cut, rule_, schedule_, one_.choices, *mine_.place)
                          : combine_allreduce(space_, comm_, gradient, rule_, mine_.cut, schedule_, one_.choices);
    }
    return all_of(std::move(gradient), *found);
  }
  own_result<T> started() const {
    auto gradient = mine_.values;
    auto plan = make_plan();
    plan.start(gradient);
    while (!plan.test()) std::this_thread::yield();
    const auto& found = plan.wait();
    return all_of(std::move(gradient), found);
  }
  own_result<T> in_buffer() const {
    auto plan = make_plan();
    const auto buffer = plan.buffer();
    std::ranges::copy(mine_.values, buffer.begin());
    const auto& found = plan();
    return all_of({buffer.begin(), buffer.end()}, found);
  }

  /// The first rank gets nothing, the others as nearly equal parts as can be.
  parts dealt_parts() const {
    std::vector<std::size_t> lengths(static_cast<std::size_t>(comm_.size()));
    const auto others = comm_.size() == 1 ? 1 : lengths.size() - 1;
    for (std::size_t i = 0; i < others; ++i)
      lengths[lengths.size() - others + i] = (i + 1) * mine_.values.size() / others - i * mine_.values.size() / others;
    return parts(lengths);
  }
  own_result<T> dealt_out_once() const {
    auto gradient = mine_.values;
    const auto found = combine_reduce_scatter(space_, comm_, gradient, mine_.cut, schedule_, rule_, one_.choices);
    return part_of(gradient, part_of_rank(gradient.size(), comm_.size(), comm_.rank()), found);
  }
  own_result<T> dealt_out() const {
    auto gradient = mine_.values;
    auto plan = plan_reduce_scatter<T>(space_, comm_, mine_.cut, rule_, dealt_parts(), schedule_, one_.choices);
    const auto& found = plan(gradient);
    return part_of(gradient, plan.part(), found);
  }

  /// Each segment is a parameter with a bucket of its own; the last report is that of the first ones.
  own_result<T> in_buckets() const {
    std::vector<std::size_t> lengths;
    for (std::size_t k = 0; k < mine_.cut.size(); ++k) lengths.push_back(mine_.cut.length(k));
    auto buckets = plan_bucketed<T>(space_, comm_, lengths, 1, rule_, schedule_, one_.choices);
    auto gradient = mine_.values;
    for (std::size_t k = lengths.size(); k-- > 0;)
      buckets.ready(k, std::span(gradient).subspan(mine_.cut.offset(k), lengths[k]));
    const report found = *buckets.wait().back();
    return all_of(std::move(gradient), found);
  }
  /// The step of each rank is its gradient; what comes out is the combined step.
  own_result<T> of_steps() const {
    auto plan = make_plan();
    const std::vector<T> before(mine_.values.size(), from_double<T>(1));
    auto weights = before;
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = from_double<T>(to_double(weights[x]) + to_double(mine_.values[x]));
    const auto& found = delta_allreduce(plan, before, weights);
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = from_double<T>(to_double(weights[x]) - to_double(before[x]));
    return all_of(std::move(weights), found);
  }

  const Space& space_;
  const any_communicator& comm_;
  const combination& one_;
  const Rule& rule_;
  const Schedule& schedule_;
  const own_gradient<T>& mine_;
};

/// The call of a combination, on one rank: what it gets.
template <scalar T, bool every_call, class Space, class Rule, class Schedule>
own_result<T> reduce(const Space& space, const any_communicator& comm, const combination& one, const Rule& rule,
                     const Schedule& schedule, const own_gradient<T>& mine) {
  return one_reduction<T, every_call, Space, Rule, Schedule>(space, comm, one, rule, schedule, mine).run();
}

}  // namespace adasum::test
