// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/any_rule.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/core/weigh.hpp>

#include "support/random_gradients.hpp"
#include "support/ranks.hpp"

namespace test_of_rules_any_rule {

using namespace adasum;
using namespace adasum::test;
using rules::any_rule, rules::gradvac;

TEST_CASE("any_rule tells which rule it holds, and holds rules::adasum at first") {
  any_rule rule;
  CHECK(rule.target<rules::adasum>() != nullptr);
  CHECK(rule.name == "adasum");
  rule = gradvac{.beta = 0.5, .per_segment = true};
  CHECK(rule.target<rules::adasum>() == nullptr);
  REQUIRE(rule.target<gradvac>() != nullptr);
  CHECK(rule.target<gradvac>()->beta == 0.5);
  CHECK(rule.name == "gradvac");
  CHECK_FALSE(rule.whole_model());
  CHECK(any_rule(gradvac{}).whole_model());
  CHECK(any_rule(rules::unit_mean{}).degree() == rules::unit_mean{}.degree());
}

TEST_CASE("calls update the state of the rule that any_rule holds; plans and copies have one of their own") {
  const auto gradients = random_gradients<float>(3, 50, 9);
  const auto results = results_of(on_ranks(3, [&](const thread_communicator& comm) {
    const auto& mine = gradients[static_cast<std::size_t>(comm.rank())];
    const serial_space exec;
    gradvac typed{.beta = 0.5};
    any_rule any = typed;
    const any_rule constant = any;
    auto plan = plan_allreduce<float>(exec, comm, 50, constant);
    auto plan_of_typed = plan_allreduce<float>(exec, comm, 50, typed);
    bool same = true;
    for (int run = 0; run < 3; ++run) {
      auto called = mine, planned = mine, called_typed = mine, planned_typed = mine;
      combine_allreduce(exec, comm, called_typed, typed);
      combine_allreduce(exec, comm, called, any);
      plan_of_typed(planned_typed);
      plan(planned);
      same = same && called == called_typed && planned == planned_typed;
    }
    same = same && any.target<gradvac>()->calls == typed.calls && any.target<gradvac>()->targets == typed.targets;
    same = same && plan.current_rule().target<gradvac>()->targets == plan_of_typed.current_rule().targets;
    return same && constant.target<gradvac>()->calls.empty();
  }));
  for (const bool same : results) CHECK(same);
}

/// Weights of a rule of two vectors, called by itself.
std::vector<double> weights_of(any_rule rule, const std::vector<double>& gram, std::size_t n) {
  std::vector<double> weights(n);
  rule({gram.data(), n}, weights, 0);
  return weights;
}

TEST_CASE("as a function, any_rule gives a pairwise rule's weights along its tree") {
  const std::vector<double> gram{4, 1, 2, 0.5, -1, 3, 1, 0.25, 0.5, 5};  // of four vectors
  std::vector<double> expected(4);
  const std::vector<std::size_t> leaves(4, 1);
  detail::weigh_scratch scratch(4);
  const rules::adasum adaptive;
  detail::weigh_along_tree(adaptive, {gram.data(), 4}, leaves.data(), expected.data(), scratch);
  CHECK(weights_of(adaptive, gram, 4) == expected);
  const rules::adasum_linear linear;
  detail::weigh_along_tree(linear, {gram.data(), 4}, leaves.data(), expected.data(), scratch);
  CHECK(weights_of(linear, gram, 4) == expected);
  CHECK(weights_of(rules::sum{}, {1, -1, 1}, 2) == std::vector<double>{1, 1});  // which cancel
  CHECK(weights_of(rules::unit_mean{}, {4, 0, 1}, 2) == std::vector<double>{0.25, 0.5});
}

TEST_CASE(
    "with a schedule that combines pair by pair, any_rule runs the rules that can be; others are refused by all "
    "ranks") {
  const auto gradients = random_gradients<float>(4, 40, 3);
  const auto run = [&](const auto& rule) {
    return on_ranks(4, [&](const thread_communicator& comm) {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      combine_allreduce(serial_space{}, comm, gradient, rule, schedules::recursive_doubling{});
      return gradient;
    });
  };
  CHECK(results_of(run(any_rule(rules::mean{}))) == results_of(run(rules::mean{})));
  const auto refused = run(any_rule(rules::multi_krum{}));
  for (std::size_t r = 0; r < refused.size(); ++r) {
    CAPTURE(r);
    const auto message = refused[r].message_of<adasum::error>();
    REQUIRE(message);
    CHECK(message->find(
              "the schedule recursive_doubling combines gradients pair by pair, and the rule multi_krum needs all "
              "inner products at once") != message->npos);
  }
}

TEST_CASE("nearest_neighbour_mixing of any_rule measures distances, as that of the rule") {
  const auto gradients = random_gradients<float>(5, 40, 3, gradient_kind::near_parallel);
  std::vector<float> expected(40), found(40);
  combine(serial_space{}, gradients, expected,
          rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1, .rule = {.byzantine = 1}});
  combine(serial_space{}, gradients, found,
          rules::nearest_neighbour_mixing<any_rule>{.byzantine = 1, .rule = rules::multi_krum{.byzantine = 1}});
  CHECK(found == expected);
}

}  // namespace test_of_rules_any_rule
