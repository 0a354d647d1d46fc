// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules with a state, or whose weights are a matter of order: the same on all ranks, call after call.
#include <adasum/adasum.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/bits.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/rule_checks.hpp"

namespace test_of_rules_across_ranks {

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
    for (std::size_t run = 0; run < 3; ++run) {
      auto gradient = random_gradients<double>(4, 20, run)[static_cast<std::size_t>(comm.rank())];
      plan(gradient);
      reduced.push_back(gradient);
    }
    return reduced;
  }));
  for (std::size_t rank = 1; rank < results.size(); ++rank) CHECK(results[rank] == results[0]);
  Rule alone(rule);
  for (std::size_t run = 0; run < 3; ++run) {
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
  check_across_ranks(rules::adacons{.momentum = 0.5});
  check_across_ranks(rules::adacons{.momentum = 0.5, .per_segment = true});
  check_across_ranks(rules::unit_mean{});
  check_across_ranks(rules::geometric_median{});
  check_across_ranks(rules::centred_clipping{});
  check_across_ranks(rules::gradient_agreement_filtering{.threshold = 1.2});
  check_across_ranks(rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1});
  check_across_ranks(rules::nearest_neighbour_mixing<rules::adacons>{.byzantine = 1, .rule = {.momentum = 0.5}});
}

namespace {

/// Gradients that differ by 1 and have a part of 1e8 in common; the first is zero, the last one lies 20 off.
template <class T>
std::vector<std::vector<T>> with_common_part() {
  std::vector<std::vector<T>> g{std::vector<T>(40)};
  for (std::size_t i = 0; i < 6; ++i) {
    auto d = random_gradients<double>(7, 40, 5)[i];
    d = times({d}, (i < 5 ? 1 : 20) / norm_of(d)).front();
    d[11] = d[33] = 1e8;
    g.emplace_back(d.begin(), d.end());
  }
  return g;
}

/// The weights on every rank, by every schedule, in plans that run twice; against those of one process.
template <class T, class Rule>
void check_common_part_across_ranks(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  const auto g = with_common_part<T>();
  const segments cut{7, 1, 20, 0, 12};
  std::vector<T> expected(40);
  const auto local = combine(serial_space{}, g, expected, rule, cut);
  const auto check = [&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto results = results_of(on_ranks(7, [&](const thread_communicator& comm) {
      auto plan = plan_allreduce<T>(serial_space{}, comm, cut, rule, {.nonfinite = nonfinite_policy::exclude}, order);
      std::vector<T> own = g[static_cast<std::size_t>(comm.rank())];
      for (int run = 0; run < 2; ++run) {
        own = g[static_cast<std::size_t>(comm.rank())];
        plan(own);
      }
      std::vector<double> weights;
      for (std::size_t k = 0; k < cut.size(); ++k)
        for (std::size_t i = 0; i < g.size(); ++i) weights.push_back(plan.last_report().weight(i, k));
      return std::pair(own, weights);
    }));
    for (const auto& rank : results) {
      CHECK(same_bits(rank.first, expected));
      for (std::size_t k = 0; k < cut.size(); ++k)
        for (std::size_t i = 0; i < g.size(); ++i)
          CHECK(rank.second[k * g.size() + i] == doctest::Approx(local.weight(i, k)).epsilon(1e-13));
    }
  };
  check(schedules::all_to_all{}, "all_to_all");
  check(schedules::automatic{}, "automatic");
  check(schedules::shared_memory{}, "shared_memory");
}

}  // namespace

TEST_CASE("distances that inner products do not give: the same on all ranks, by every schedule, as in one process") {
  check_common_part_across_ranks<double>(rules::multi_krum{.byzantine = 2, .selected = 3});
  check_common_part_across_ranks<float>(rules::multi_krum{.byzantine = 2, .selected = 3, .per_segment = true});
  check_common_part_across_ranks<float>(
      rules::nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 2, .rule = {.byzantine = 2, .selected = 2}});
}

TEST_CASE("ranks that disagree about a parameter are told so: of the rule, and of the rule inside it") {
  const auto refused = [](const auto& rule_of) {
    const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
      plan_allreduce<double>(serial_space{}, comm, 8, rule_of(static_cast<std::size_t>(comm.rank())),
                             {.check_agreement = true});
      return 0;
    });
    for (const auto& rank : ranks) CHECK(rank.error);
  };
  refused([](std::size_t rank) { return rules::pcgrad{.seed = std::uint64_t{rank} << 40}; });
  refused([](std::size_t rank) { return rules::gradvac{.beta = 0.01 * static_cast<double>(rank)}; });
  refused([](std::size_t rank) { return rules::nearest_neighbour_mixing<rules::mean>{.byzantine = rank}; });
  refused([](std::size_t rank) {
    return rules::nearest_neighbour_mixing<rules::multi_krum>{.rule = {.selected = rank + 1}};
  });
}

TEST_CASE("across nodes, the mean weighs them by their ranks that take part; other rules count each node once") {
  const segments cut{2, 3};
  // Equal gradients, of nodes of three ranks and two. Inside, Adasum gives the gradient itself.
  const auto check = [&](const auto& rule, bool excludes, double of_first, double of_second) {
    CAPTURE(std::string(rule.name));
    CAPTURE(excludes);
    const schedules::hierarchical order{std::vector{0, 0, 0, 1, 1}, rules::adasum{}, schedules::all_to_all{}};
    const auto reports = results_of(on_ranks(5, [&](const thread_communicator& comm) {
      std::vector<double> gradient(cut.total(), 0.5);
      if (excludes && comm.rank() == 1) gradient[0] = std::numeric_limits<double>::infinity();
      return combine_allreduce(serial_space{}, comm, gradient, rule, order, cut,
                               {.nonfinite = nonfinite_policy::exclude});
    }));
    for (const auto& found : reports) {
      CHECK(found.weight(0, 1) + found.weight(1, 1) + found.weight(2, 1) == doctest::Approx(of_first));
      CHECK(found.weight(3, 1) + found.weight(4, 1) == doctest::Approx(of_second));
    }
  };
  const double length = std::sqrt(3 * 0.25);  // of segment 1
  for (const bool excludes : {false, true}) {
    check(rules::mean{}, excludes, excludes ? 0.5 : 0.6, excludes ? 0.5 : 0.4);
    check(rules::sum{}, excludes, 1, 1);
    check(rules::adasum{}, excludes, 0.5, 0.5);
    check(rules::adasum_linear{}, excludes, 0.5, 0.5);
    check(rules::unit_mean{}, excludes, 0.5 / length, 0.5 / length);
    check(rules::geometric_median{}, excludes, 0.5, 0.5);
    check(rules::centred_clipping{}, excludes, 0.5, 0.5);
    check(rules::gradvac{}, excludes, 1, 1);
    check(rules::pcgrad{}, excludes, 1, 1);
  }
}

}  // namespace test_of_rules_across_ranks
