// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/testing/schedule.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/doctest_scalars.hpp"
#include "support/hierarchical_formula.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_schedules_hierarchical {

/// hierarchical against its formula: rule over the nodes of (inner over the gradients of a node's ranks), in double.

using namespace adasum::test;

namespace {

const adasum::segments segs{11, 0, 40, 6};

using vec = std::vector<double>;

template <adasum::scalar T, class Inner, class Rule, class Outer>
void check(const std::vector<int>& node_of_rank, const Inner& inner, const Rule& rule, const Outer& outer) {
  const auto size = node_of_rank.size();
  const auto gradients = random_gradients<T>(size, segs.total(), size);
  const auto expected = hierarchical_formula(segs, node_of_rank, inner, rule, gradients);
  const adasum::schedules::hierarchical order{node_of_rank, inner, outer};
  CAPTURE(size);
  CAPTURE(std::string(Inner::name));
  CAPTURE(std::string(Rule::name));
  CAPTURE(std::string(Outer::name));

  const auto by_message = reduce_on_threads<T>(gradients, segs, rule, order);
  check_same_on_all_ranks(by_message);
  check_close<T>(segs, by_message.front().gradient, expected, gradients);
  CHECK(by_message.front().found.schedule() == "hierarchical");

  // In the plan's buffer the ranks of a node work in place; the thread communicator counts as one node.
  const auto in_place = on_ranks(static_cast<int>(size), [&](const adasum::thread_communicator& comm) {
    auto plan = adasum::plan_allreduce<T>(adasum::serial_space{}, comm, segs, rule, order);
    const auto buffer = plan.buffer();
    for (int run = 0; run < 3; ++run) {
      std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
      plan();
    }
    return std::vector<T>(buffer.begin(), buffer.end());
  });
  for (const auto& rank : in_place) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(same_bits(*rank.value, *in_place.front().value));
  }
  check_close<T>(segs, *in_place.front().value, expected, gradients);
}

}  // namespace

TEST_CASE_TEMPLATE("the formula, for odd, unequal and interleaved nodes", T, double, float) {
  for (const auto& nodes : arrangements) {
    check<T>(nodes, adasum::rules::mean{}, adasum::rules::adasum{}, adasum::schedules::automatic{});
    check<T>(nodes, adasum::rules::sum{}, adasum::rules::adasum{}, adasum::schedules::recursive_halving{});
    check<T>(nodes, adasum::rules::adasum{}, adasum::rules::adasum{}, adasum::schedules::recursive_doubling{});
    check<T>(nodes, adasum::rules::adasum{}, adasum::rules::adasum{}, adasum::schedules::all_to_all{});
  }
}

TEST_CASE("stages of all ranks fit together, whatever the rules and the schedule across nodes") {
  using namespace adasum::schedules;
  for (const auto& nodes : arrangements) {
    const auto size = static_cast<int>(nodes.size());
    CAPTURE(size);
    CHECK_NOTHROW(adasum::check_schedule(hierarchical{nodes, adasum::rules::mean{}}, size));
    CHECK_NOTHROW(adasum::check_schedule(hierarchical{nodes, adasum::rules::unit_mean{}, all_to_all{}}, size));
    CHECK_NOTHROW(adasum::check_schedule(hierarchical{nodes, adasum::rules::adasum{}, recursive_halving{}}, size));
    CHECK_NOTHROW(adasum::check_schedule(hierarchical{nodes, adasum::rules::adasum{}, recursive_doubling{}}, size));
  }
}

TEST_CASE("shards that differ by an element take the same stages, where the schedule across nodes goes by the length") {
  // With two nodes, automatic takes halving from 8 KiB on: shards of 2048 floats are shorter, those of 2049 are not.
  const adasum::schedules::hierarchical order{std::vector{0, 0, 1, 1}, adasum::rules::mean{}};
  for (std::size_t length = 4080; length < 4110; ++length) {
    CAPTURE(length);
    adasum::schedule_input input{.length = length, .element_size = 4, .segments = 1, .along_tree = true};
    CHECK_NOTHROW(adasum::check_schedule(order, 4, input));
  }
  const auto gradients = random_gradients<float>(4, 4097, 3);
  const auto ranks = reduce_on_threads<float>(gradients, adasum::segments{4097}, adasum::rules::adasum{}, order);
  check_same_on_all_ranks(ranks);
}

TEST_CASE("gradients of few elements, of which some parts have none") {
  using adasum::schedules::hierarchical;
  const adasum::rules::adasum rule;
  for (const auto& nodes : {std::vector{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}})
    for (std::size_t length = 1; length <= 9; ++length) {
      const auto size = nodes.size();
      CAPTURE(size);
      CAPTURE(length);
      const adasum::segments all{length};
      const auto gradients = random_gradients<double>(size, length, length);
      const auto expected = hierarchical_formula(all, nodes, rule, rule, gradients);
      const auto check_order = [&](const auto& across) {
        const hierarchical order{nodes, rule, across};
        CHECK_NOTHROW(adasum::check_schedule(
            order, static_cast<int>(size),
            {.length = length, .element_size = sizeof(double), .segments = 1, .along_tree = true}));
        const auto ranks = reduce_on_threads<double>(gradients, all, rule, order);
        check_same_on_all_ranks(ranks);
        check_close<double>(all, ranks.front().gradient, expected, gradients);
      };
      check_order(adasum::schedules::recursive_halving{});
      check_order(adasum::schedules::all_to_all{});
    }
}

TEST_CASE("nodes of different sizes, each with memory of its own: in place inside, messages across") {
  for (const auto& nodes : {std::vector{0, 0, 0, 1, 1}, {0, 0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 0, 1, 0, 2}}) {
    const auto size = static_cast<int>(nodes.size());
    CAPTURE(size);
    const auto gradients = random_gradients<double>(nodes.size(), segs.total(), nodes.size());
    const auto blocks = node_communicator::make_blocks();
    const auto reduced_by = [&](const auto& inner, const auto& outer) {
      const auto expected = hierarchical_formula(segs, nodes, inner, adasum::rules::adasum{}, gradients);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& threads) {
        const node_communicator comm(threads, nodes, blocks);
        auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, adasum::rules::adasum{},
                                                   adasum::schedules::hierarchical{nodes, inner, outer});
        const auto buffer = plan.buffer();
        for (int run = 0; run < 3; ++run) {
          std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
          plan();
        }
        return vec(buffer.begin(), buffer.end());
      });
      for (const auto& rank : ranks) {
        REQUIRE_MESSAGE(rank.value, rank.description());
        CHECK(same_bits(*rank.value, *ranks.front().value));
      }
      check_close<double>(segs, *ranks.front().value, expected, gradients);
    };
    reduced_by(adasum::rules::mean{}, adasum::schedules::all_to_all{});
    reduced_by(adasum::rules::adasum{}, adasum::schedules::recursive_doubling{});
  }
}

TEST_CASE("any rule inside the nodes, also of one rank") {
  for (const auto& nodes : arrangements)
    check<double>(nodes, adasum::rules::unit_mean{}, adasum::rules::adasum{}, adasum::schedules::automatic{});
}

TEST_CASE("any rule across the nodes") {
  for (const auto& nodes : arrangements)
    check<double>(nodes, adasum::rules::mean{}, adasum::rules::unit_mean{}, adasum::schedules::all_to_all{});
}

TEST_CASE("the mean of all: the mean across nodes counts the ranks of each") {
  const std::vector<int> nodes{0, 0, 0, 1, 1};
  const auto gradients = random_gradients<double>(5, segs.total(), 3);
  vec mean(segs.total());
  adasum::combine(adasum::serial_space{}, gradients, mean, adasum::rules::mean{}, segs);
  const auto ranks = reduce_on_threads<double>(gradients, segs, adasum::rules::mean{},
                                               adasum::schedules::hierarchical{nodes, adasum::rules::mean{}});
  check_close<double>(segs, ranks.front().gradient, mean, gradients);
}

TEST_CASE("weights are told per rank, in the order of ranks") {
  const std::vector<int> nodes{0, 1, 0, 1, 1};
  auto gradients = random_gradients<double>(5, segs.total(), 3);
  const auto ranks = reduce_on_threads<double>(gradients, segs, adasum::rules::adasum{},
                                               adasum::schedules::hierarchical{nodes, adasum::rules::mean{}});
  const auto& found = ranks.front().found;
  vec from_weights(segs.total(), 0);
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t k = 0; k < segs.size(); ++k)
      for (auto x = segs.offset(k); x < segs.offset(k) + segs.length(k); ++x)
        from_weights[x] += found.weight(r, k) * gradients[r][x];
  check_close<double>(segs, ranks.front().gradient, from_weights, gradients);
  CHECK(found.weight(0, 0) == found.weight(2, 0));
  CHECK(found.weight(1, 0) == found.weight(4, 0));
  CHECK(found.weight(0, 0) != found.weight(1, 0));
}

#if defined(ADASUM_TEST_EIGEN)
TEST_CASE("16-bit elements near the largest: the mean inside the nodes does not overflow") {
  const std::vector<std::vector<Eigen::half>> gradients(4, std::vector<Eigen::half>(segs.total(), Eigen::half(60000)));
  const auto ranks =
      reduce_on_threads<Eigen::half>(gradients, segs, adasum::rules::adasum{},
                                     adasum::schedules::hierarchical{std::vector{0, 0, 1, 1}, adasum::rules::mean{}});
  for (const auto x : ranks.front().gradient) CHECK(static_cast<float>(x) == 60000.0f);
}
#endif

TEST_CASE("nodes for another number of ranks are refused on every rank") {
  for (const bool checked : {false, true}) {
    const auto ranks = on_ranks(3, [&](const adasum::thread_communicator& comm) {
      std::vector<float> gradient(segs.total(), 1);
      adasum::options choices;
      choices.check_agreement = checked;
      adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, segs,
                               adasum::schedules::hierarchical{std::vector{0, 0}, adasum::rules::mean{}}, choices);
      return 0;
    });
    for (const auto& rank : ranks)
      CHECK(rank.message_of<adasum::error>().value_or("").find("nodes are given for 2 ranks, the communicator has 3") !=
            std::string::npos);
  }
}

TEST_CASE("one rank with other nodes, or another inner rule, is a disagreement on every rank") {
  const auto disagree = [](int size, const auto& order_of) {
    const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
      std::vector<float> gradient(12, 1);
      adasum::options choices;
      choices.check_agreement = true;
      order_of(comm.rank(), [&](const auto& order) {
        adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, adasum::segments{12}, order, choices);
      });
      return 0;
    });
    for (const auto& rank : ranks) CHECK(rank.template threw<adasum::agreement_error>());
  };
  using adasum::schedules::hierarchical;
  disagree(3, [](int rank, auto&& run) {
    run(hierarchical{rank == 1 ? std::vector{0, 0} : std::vector{0, 0, 1}, adasum::rules::mean{}});
  });
  disagree(6, [](int rank, auto&& run) {
    run(hierarchical{rank == 2 ? std::vector{0, 1, 2, 3, 2, 3} : std::vector{0, 1, 2, 2, 3, 3}, adasum::rules::mean{}});
  });
  disagree(4, [](int rank, auto&& run) {
    const std::vector nodes{0, 0, 1, 1};
    if (rank == 3)
      run(hierarchical{nodes, adasum::rules::sum{}});
    else
      run(hierarchical{nodes, adasum::rules::mean{}});
  });
}

namespace {

/// By messages, and in the plan's buffer: what every rank is told.
template <class Rule, class Order>
void for_each_way(const std::vector<vec>& gradients, const std::vector<int>& nodes, const Rule& rule,
                  const Order& order, const adasum::options& choices, const auto& visit) {
  visit(reduce_on_threads<double>(gradients, segs, rule, order, choices));
  const auto blocks = node_communicator::make_blocks();
  visit(results_of(on_ranks(static_cast<int>(nodes.size()), [&](const adasum::thread_communicator& threads) {
    const node_communicator comm(threads, nodes, blocks);
    auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, rule, order, choices);
    const auto buffer = plan.buffer();
    adasum::report found;
    for (int run = 0; run < 2; ++run) {
      std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
      found = plan();
    }
    return reduced<double>{vec(buffer.begin(), buffer.end()), found};
  })));
}

/// The same with rules that look at inner products, and rules that do not, inside the nodes and across them.
void for_each_pair_of_rules(const auto& visit) {
  const auto with = [&](const auto& inner) {
    visit(inner, adasum::rules::adasum{});
    visit(inner, adasum::rules::mean{});
  };
  with(adasum::rules::adasum{});
  with(adasum::rules::mean{});
  with(adasum::rules::unit_mean{});
}

}  // namespace

TEST_CASE("all ranks are told the same: whose gradient is not finite, and in which segment") {
  using limits = std::numeric_limits<double>;
  for (const auto& nodes : arrangements)
    for (std::size_t culprit = 0; culprit < nodes.size(); ++culprit) {
      auto gradients = random_gradients<double>(nodes.size(), segs.total(), 5);
      gradients[culprit][segs.offset(2) + 7] = culprit % 2 == 0 ? limits::quiet_NaN() : -limits::infinity();
      const std::vector<adasum::nonfinite_input> expected{{static_cast<int>(culprit), 2}};
      CAPTURE(nodes.size());
      CAPTURE(culprit);
      for_each_pair_of_rules([&](const auto& inner, const auto& rule) {
        const auto check_across = [&](const auto& outer) {
          const adasum::schedules::hierarchical order{nodes, inner, outer};
          for (const auto policy : {adasum::nonfinite_policy::propagate, adasum::nonfinite_policy::exclude})
            for_each_way(gradients, nodes, rule, order, {.nonfinite = policy}, [&](const auto& ranks) {
              check_same_on_all_ranks(ranks);
              for (const auto& rank : ranks) {
                CHECK_FALSE(rank.found.finite());
                CHECK(rank.found.nonfinite() == expected);
                CHECK(rank.found.excluded() == ranks.front().found.excluded());
              }
            });
        };
        // Each of them with some of the culprits.
        if (culprit % 3 == 0) check_across(adasum::schedules::recursive_doubling{});
        if (culprit % 3 == 1) check_across(adasum::schedules::recursive_halving{});
        if (culprit % 3 == 2) check_across(adasum::schedules::all_to_all{});
      });
    }
}

TEST_CASE("all ranks are told the same: whether norms were measured, where only some rules need them") {
  for (const auto& nodes : arrangements)
    for_each_pair_of_rules([&]<class Inner, class Rule>(const Inner& inner, const Rule& rule) {
      CAPTURE(nodes.size());
      CAPTURE(std::string(Inner::name));
      CAPTURE(std::string(Rule::name));
      const auto gradients = random_gradients<double>(nodes.size(), segs.total(), 5);
      const adasum::schedules::hierarchical order{nodes, inner, adasum::schedules::recursive_halving{}};
      for (const auto measure : {adasum::measuring::always, adasum::measuring::when_needed})
        for_each_way(gradients, nodes, rule, order, {.measure = measure}, [&](const auto& ranks) {
          check_same_on_all_ranks(ranks);
          for (const auto& rank : ranks) {
            CHECK(rank.found.measured() ==
                  (measure == adasum::measuring::always || (adasum::needs_gram<Rule> && adasum::needs_gram<Inner>)));
            CHECK(rank.found.finite());
            CHECK(rank.found.nonfinite().empty());
            for (std::size_t k = 0; k < segs.size(); ++k) {  // all norms, or none
              CHECK(std::isnan(rank.found.result_norm(k)) != rank.found.measured());
              for (std::size_t r = 0; r < nodes.size(); ++r)
                CHECK(std::isnan(rank.found.norm(r, k)) != rank.found.measured());
            }
          }
        });
    });
}

namespace {

/// Recursive doubling in which the last node is the first leaf.
struct backwards {
  static constexpr std::string_view name = "backwards";
  static constexpr bool supports_gram_rules = false;

  std::vector<adasum::stage> stages(int rank, int size, const adasum::schedule_input& input) const {
    auto stages = adasum::schedules::recursive_doubling{}.stages(size - 1 - rank, size, input);
    for (auto& stage : stages) {
      for (int& member : stage.members) member = size - 1 - member;
      for (int& member : stage.sum_over) member = size - 1 - member;
    }
    return stages;
  }
  static std::vector<int> leaf_ranks(int size, const adasum::schedule_input&) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.rbegin(), ranks.rend(), 0);
    return ranks;
  }
};

}  // namespace

TEST_CASE("an outer schedule with an order of leaves of its own: the nodes are combined in it, and the report knows") {
  const std::vector<int> nodes{0, 0, 1, 2, 2, 2};  // combined as (2, 1), 0
  const auto gradients = random_gradients<float>(6, segs.total(), 5);
  auto turned_nodes = nodes;
  auto turned = gradients;
  std::ranges::reverse(turned_nodes);
  std::ranges::reverse(turned);
  const auto expected = hierarchical_formula(segs, turned_nodes, adasum::rules::sum{}, adasum::rules::adasum{}, turned);
  const adasum::schedules::hierarchical order{nodes, adasum::rules::sum{}, backwards{}};
  CHECK(order.leaf_ranks(6, {}) == std::vector{3, 4, 5, 2, 0, 1});
  const auto ranks = reduce_on_threads<float>(gradients, segs, adasum::rules::adasum{}, order);
  check_same_on_all_ranks(ranks);
  check_close<float>(segs, ranks[0].gradient, expected, gradients);
  // The result is Σ cᵢ gᵢ with the weights and norms that the report has for rank i.
  const auto& found = ranks[0].found;
  for (std::size_t k = 0; k < segs.size(); ++k)
    for (auto x = segs.offset(k); x < segs.offset(k) + segs.length(k); ++x) {
      double sum = 0, mass = 0;
      for (std::size_t i = 0; i < 6; ++i) {
        sum += found.weight(i, k) * gradients[i][x];
        mass += std::abs(found.weight(i, k) * gradients[i][x]);
      }
      CHECK(std::abs(sum - ranks[0].gradient[x]) <= 40 * 0x1p-24 * mass);
    }
}

}  // namespace test_of_schedules_hierarchical
