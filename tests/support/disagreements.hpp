// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <adasum/adasum.hpp>

#include "ending.hpp"

namespace adasum::test {

template <class T = float>
std::vector<T> counted(std::size_t length) {
  std::vector<T> gradient(length);
  std::iota(gradient.begin(), gradient.end(), T{1});
  return gradient;
}

inline constexpr options checked{.check_agreement = true};
inline constexpr options unchecked{.check_agreement = false};

/// Every way in which one rank can differ from the others: visit(mentions, call), where call(comm, differs) is what a
/// rank does, with agreement checks on, and every rank's message must contain `mentions`.
template <class Visitor>
void for_each_disagreement(Visitor&& visit) {
  const serial_space space{};
  const auto reduce = [=](const auto& comm, const auto& gradient, const segments& segs, const auto& rule,
                          const auto& order, const options& choices = checked) {
    return end_of(gradient, [&](auto& g) { combine_allreduce(space, comm, g, rule, segs, order, choices); });
  };
  const rules::adasum rule{};
  const schedules::automatic order{};

  visit("length of the gradient", [=](const auto& comm, bool differs) {
    const std::size_t length = differs ? 11 : 10;
    return reduce(comm, counted(length), segments{length}, rule, order);
  });
  visit("number of segments", [=](const auto& comm, bool differs) {
    return reduce(comm, counted(10), differs ? segments{10} : segments{4, 6}, rule, order);
  });
  visit("on the segments", [=](const auto& comm, bool differs) {
    return reduce(comm, counted(10), differs ? segments{5, 5} : segments{4, 6}, rule, order);
  });
  visit("scalar type", [=](const auto& comm, bool differs) {
    return differs ? reduce(comm, counted<double>(10), segments{10}, rule, order)
                   : reduce(comm, counted<float>(10), segments{10}, rule, order);
  });
  visit("rule", [=](const auto& comm, bool differs) {
    return differs ? reduce(comm, counted(10), segments{10}, rules::sum{}, order)
                   : reduce(comm, counted(10), segments{10}, rule, order);
  });
  visit("the parameters of the rule adacons", [=](const auto& comm, bool differs) {
    return reduce(comm, counted(10), segments{10}, rules::adacons{.momentum = differs ? 0.9 : 0.99}, order);
  });
  visit("the parameters of the rule multi_krum", [=](const auto& comm, bool differs) {
    return reduce(comm, counted(10), segments{10}, rules::multi_krum{.selected = differs ? 2u : 1u}, order);
  });
  visit("the parameters of the inner rule adacons", [=](const auto& comm, bool differs) {
    schedules::hierarchical nodes{std::vector<int>(static_cast<std::size_t>(comm.size())), rules::adacons{}};
    nodes.inner.guard = differs ? 1e-3 : 1e-6;
    return reduce(comm, counted(10), segments{10}, rule, nodes);
  });
  visit("schedule", [=](const auto& comm, bool differs) {
    return differs ? reduce(comm, counted(10), segments{10}, rule, schedules::recursive_halving{})
                   : reduce(comm, counted(10), segments{10}, rule, schedules::recursive_doubling{});
  });
  visit("options", [=](const auto& comm, bool differs) {
    const options choices{.check_agreement = true, .measure = differs ? measuring::when_needed : measuring::always};
    return reduce(comm, counted(10), segments{10}, rules::sum{}, order, choices);
  });
  if (best_instruction_set() != instruction_set::baseline)
    visit("execution space", [=](const auto& comm, bool differs) {
      const auto set = differs ? instruction_set::baseline : best_instruction_set();
      return end_of(counted(10), [&](auto& g) {
        combine_allreduce(serial_space(set), comm, g, rule, segments{10}, order, checked);
      });
    });

  visit("the segments hold 9 elements in all, the gradient has 10", [=](const auto& comm, bool differs) {
    return reduce(comm, counted(10), differs ? segments{4, 5} : segments{4, 6}, rule, order);
  });
  visit("the gradient is a null pointer with 10 elements", [=](const auto& comm, bool differs) {
    return end_of(counted(10), [&](auto& g) {
      const std::span<float> elements(differs ? nullptr : g.data(), g.size());
      combine_allreduce(space, comm, elements, rule, segments{10}, order, checked);
    });
  });
  visit("the gradient has 12 elements, the plan is for 10", [=](const auto& comm, bool differs) {
    const segments segs{4, 6};
    auto plan = plan_allreduce<float>(space, comm, segs, rule, order, checked);
    return end_of(counted(differs ? 12 : 10), [&](auto& g) { plan(g); });
  });
  visit("10 weights before the step, 9 after it, and the plan is for 10", [=](const auto& comm, bool differs) {
    const segments segs{4, 6};
    auto plan = plan_allreduce<float>(space, comm, segs, rule, order, checked);
    return end_of(counted(differs ? 9 : 10),
                  [&](auto& weights) { delta_allreduce(plan, std::vector<float>(10), weights); });
  });
}

}  // namespace adasum::test
