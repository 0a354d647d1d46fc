// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules with a state, or whose weights are a matter of order: the same on all ranks, call after call.
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/rule_checks.hpp"

using namespace adasum;
using namespace adasum::test;

namespace {

/// Three runs of one plan on four ranks, and of combine on one.
template <class Rule>
void check_across_ranks(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  const segments cut{7, 13};
  const auto results = results_of(on_ranks(4, [&](const thread_communicator& comm) {
    std::vector<vec> reduced;
    auto plan = plan_allreduce<double>(serial_space{}, comm, cut, rule, {.check_agreement = true});
    for (std::uint64_t run = 0; run < 3; ++run) {
      auto gradient = random_gradients<double>(4, 20, run)[static_cast<std::size_t>(comm.rank())];
      plan(gradient);
      reduced.push_back(gradient);
    }
    return reduced;
  }));
  for (std::size_t rank = 1; rank < results.size(); ++rank) CHECK(results[rank] == results[0]);
  Rule alone(rule);
  for (std::uint64_t run = 0; run < 3; ++run) {
    vec expected(20);
    combine(serial_space{}, random_gradients<double>(4, 20, run), expected, alone, cut);
    CHECK(distance(results[0][run], expected) <= 1e-12 * norm_of(expected));
  }
}

}  // namespace

TEST_CASE("rules in a random order, with a state, around another rule: the same bits on all ranks") {
  check_across_ranks(rules::pcgrad{.seed = 3});
  check_across_ranks(rules::pcgrad{.seed = 3, .per_segment = true});
  check_across_ranks(rules::gradvac{.beta = 0.5, .seed = 3});
  check_across_ranks(rules::gradvac{.beta = 0.5, .per_segment = true});
  check_across_ranks(rules::geometric_median{});
  check_across_ranks(rules::centred_clipping{});
  check_across_ranks(rules::gradient_agreement_filtering{.threshold = 1.2});
  check_across_ranks(rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1});
  check_across_ranks(rules::nearest_neighbour_mixing<rules::adacons>{.byzantine = 1, .rule = {.momentum = 0.5}});
}

TEST_CASE("ranks that disagree about a parameter are told so: of the rule, and of the rule inside it") {
  const auto refused = [](const auto& rule_of) {
    const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
      plan_allreduce<double>(serial_space{}, comm, 8, rule_of(static_cast<std::uint64_t>(comm.rank())),
                             {.check_agreement = true});
      return 0;
    });
    for (const auto& rank : ranks) CHECK(rank.error);
  };
  refused([](std::uint64_t rank) { return rules::pcgrad{.seed = rank << 40}; });
  refused([](std::uint64_t rank) { return rules::gradvac{.beta = 0.01 * static_cast<double>(rank)}; });
  refused([](std::uint64_t rank) { return rules::nearest_neighbour_mixing<rules::mean>{.byzantine = rank}; });
  refused([](std::uint64_t rank) {
    return rules::nearest_neighbour_mixing<rules::multi_krum>{.rule = {.selected = rank + 1}};
  });
}
