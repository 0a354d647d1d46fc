// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include <adasum/accumulator.hpp>
#include <adasum/allreduce.hpp>
#include <adasum/bucketed.hpp>
#include <adasum/combine.hpp>
#include <adasum/delta.hpp>
#include <adasum/pair.hpp>
#include <adasum/plan.hpp>
#include <adasum/tree.hpp>

#include "random_gradients.hpp"
#include "ranks.hpp"

/// Every public call that waits, with given types. What each computes is compared with `expected`.
namespace adasum::test {

inline const segments call_cut{21, 0, 40, 3};

/// @param values  of each gradient
template <scalar T>
void require_near(std::span<const T> got, const std::vector<T>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t x = 0; x < got.size(); ++x)
    REQUIRE(static_cast<double>(got[x]) == doctest::Approx(static_cast<double>(expected[x])).epsilon(1e-4));
}

/// Calls of one process, under rules that take the mean of two or more gradients.
template <scalar T, class Space, class PairwiseRule, class GramRule>
void run_every_local_call(const Space& space, const PairwiseRule& pairwise, const GramRule& of_all) {
  const auto g = random_gradients<T>(2, call_cut.total(), 3);
  std::vector<T> mean(call_cut.total()), out(call_cut.total()), again(call_cut.total());
  for (std::size_t x = 0; x < mean.size(); ++x) mean[x] = (g[0][x] + g[1][x]) / 2;

  adasum_pair(space, g[0], g[1], out, call_cut);
  adasum_tree(space, g, again, call_cut);
  require_near<T>(out, again);
  for (const auto policy : {nonfinite_policy::propagate, nonfinite_policy::raise, nonfinite_policy::exclude})
    for (const auto measured : {measuring::always, measuring::when_needed}) {
      const options choices{.measure = measured, .nonfinite = policy};
      combine(space, g, out, pairwise, call_cut, choices);
      require_near<T>(out, mean);
      combine(space, g, out, of_all, call_cut, choices);
      require_near<T>(out, mean);
    }

  auto total = plan_accumulator<T>(space, call_cut, pairwise);
  total.add(g[0]);
  total.add(g[1]);
  require_near<T>(total.gradient(), mean);

  // Squares outside the range of double, so that segments are combined vector by vector.
  if constexpr (sizeof(T) == sizeof(double)) {
    auto huge = g;
    for (auto& vector : huge)
      for (T& value : vector) value *= 1e170;
    auto wanted = mean;
    for (T& value : wanted) value *= 1e170;
    CHECK(combine(space, huge, out, pairwise, call_cut).recombined_segments() > 0);
    require_near<T>(out, wanted);
    CHECK(combine(space, huge, out, of_all, call_cut).recombined_segments() > 0);
    require_near<T>(out, wanted);
    adasum_pair(space, huge[0], huge[1], out, call_cut);
  }
}

/// Calls of one rank among others, under a rule that takes the mean of all gradients.
/// @param gradients  those of all ranks
template <scalar T, class Space, class Comm, class Rule, class Schedule>
void run_every_collective_call(const Space& space, const Comm& comm, const Rule& rule, const Schedule& schedule,
                               const std::vector<std::vector<T>>& gradients) {
  const auto self = static_cast<std::size_t>(comm.rank());
  std::vector<T> mean(call_cut.total());
  for (std::size_t x = 0; x < mean.size(); ++x)
    for (const auto& gradient : gradients) mean[x] += gradient[x] / static_cast<T>(gradients.size());

  auto gradient = gradients[self];
  const auto begin = [&] { gradient = gradients[self]; };
  const auto end = [&] { require_near<T>(gradient, mean); };

  adasum_allreduce(space, comm, gradient, call_cut, schedule);
  for (const bool compares : {true, false})
    for (const auto policy : {nonfinite_policy::propagate, nonfinite_policy::raise, nonfinite_policy::exclude}) {
      const options choices{.check_agreement = compares, .nonfinite = policy};
      begin();
      combine_allreduce(space, comm, gradient, call_cut, rule, schedule, choices);
      end();
    }

  auto plan = plan_allreduce<T>(space, comm, call_cut, rule, schedule);
  for (int run = 0; run < 3; ++run) {
    begin();
    plan(gradient);
    end();
    begin();
    plan.start(gradient);
    plan.wait();
    end();
    begin();
    plan.start(gradient);
    while (!plan.test()) std::this_thread::yield();
    plan.wait();
    end();
  }
  auto own = plan_allreduce<T>(space, comm, call_cut, rule, schedule);
  for (int run = 0; run < 2; ++run) {
    const auto buffer = own.buffer();
    std::ranges::copy(gradients[self], buffer.begin());
    own();
    require_near<T>(buffer, mean);
  }
  begin();
  own(gradient);
  end();

  auto buckets = plan_bucketed<T>(space, comm, std::vector{21, 40, 3}, 100, rule, schedule);
  begin();
  std::span<T> rest(gradient);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto length = buckets.gradient(i).size();
    buckets.ready(i, rest.first(length));
    rest = rest.subspan(length);
  }
  buckets.wait();
  end();

  begin();
  const std::vector<T> before(gradient.size(), T{1});
  std::vector<T> weights = before;
  for (std::size_t x = 0; x < weights.size(); ++x) weights[x] += gradient[x];
  delta_allreduce(plan, before, weights);
  for (std::size_t x = 0; x < weights.size(); ++x)
    REQUIRE(std::abs(static_cast<double>(weights[x] - 1 - mean[x])) <= 1e-5);
}

}  // namespace adasum::test
