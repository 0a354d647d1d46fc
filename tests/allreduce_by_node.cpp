// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/schedules/cheapest.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/nodes.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"
#include "support/refusal.hpp"

namespace test_of_allreduce_by_node {

/// The default schedule on several nodes, by single calls, plans, and in plan.buffer(): one tree, that of the nodes.

using namespace adasum::test;

namespace {

struct result {
  std::vector<double> gradient;
  adasum::report found;
};

/// call(communicator, gradient) on the ranks of these nodes.
template <class Call>
std::vector<result> on_nodes(const std::vector<int>& nodes, const std::vector<std::vector<double>>& gradients,
                             const Call& call) {
  const auto blocks = node_communicator::make_blocks();
  std::vector<result> all;
  for (auto& rank : on_ranks(static_cast<int>(nodes.size()), [&](const adasum::thread_communicator& threads) {
         auto gradient = gradients[static_cast<std::size_t>(threads.rank())];
         auto found = call(node_communicator(threads, nodes, blocks), gradient);
         return result{std::move(gradient), std::move(found)};
       })) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    all.push_back(std::move(*rank.value));
  }
  return all;
}

void check_same(const std::vector<result>& ranks, const std::vector<double>& expected) {
  for (const auto& rank : ranks) CHECK(same_bits(rank.gradient, ranks.front().gradient));
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    error = std::max(error, std::abs(ranks.front().gradient[i] - expected[i]));
  }
  CHECK(error <= 1e-13 * largest);  // another tree is off by far more
}

const adasum::serial_space exec;

}  // namespace

TEST_CASE("the tree of the nodes, for short and long gradients, in the caller's memory and the plan's") {
  for (const auto& nodes : arrangements)
    for (const std::size_t length : {7u, 60u, 3'000u, 100'000u}) {
      const adasum::segments segs{length / 3, 0, length - length / 3 - 2, 2};
      const auto gradients = random_gradients<double>(nodes.size(), length, nodes.size());
      std::vector<double> expected(length);
      adasum::adasum_tree_by_node(exec, gradients, adasum::node_groups(nodes), expected, segs);
      CAPTURE(nodes.size());
      CAPTURE(length);
      check_same(on_nodes(nodes, gradients,
                          [&](const auto& comm, auto& gradient) {
                            return adasum::adasum_allreduce(exec, comm, gradient, segs);
                          }),
                 expected);
      check_same(on_nodes(nodes, gradients,
                          [&](const auto& comm, auto& gradient) {
                            auto plan = adasum::plan_allreduce<double>(exec, comm, segs);
                            return plan(gradient);
                          }),
                 expected);
      check_same(on_nodes(nodes, gradients,
                          [&](const auto& comm, auto& gradient) {
                            auto plan = adasum::plan_allreduce<double>(exec, comm, segs);
                            const auto buffer = plan.buffer();
                            for (int run = 0; run < 3; ++run) {
                              std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
                              plan();
                            }
                            std::ranges::copy(buffer, gradient.begin());
                            return adasum::report(plan.last_report());
                          }),
                 expected);
    }
}

TEST_CASE("leaders: one rank of each node carries all of it across, and every rank gets the result and the report") {
  adasum::schedules::automatic order{.on = adasum::schedules::machine{}};
  order.on->across.per_byte = 1e-6;  // of one exchange, and of the inner products of many segments
  for (const auto& nodes : arrangements) {
    const adasum::node_groups groups(nodes);
    if (groups.size() == 1 || groups.smallest() == 1) continue;
    for (const std::size_t length : {64u, 3'000u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      const adasum::segments segs(std::vector<std::size_t>(length / 4, 4));
      const adasum::schedule_input what{.length = length, .element_size = 8, .segments = segs.size(), .nodes = nodes};
      const auto size = static_cast<int>(nodes.size());
      CHECK(adasum::detail::choose_schedule(size, what, order.on).by_node ==
            adasum::schedules::carried::whole_by_leader);
      const auto gradients = random_gradients<double>(nodes.size(), length, length);
      std::vector<double> expected(length);
      adasum::adasum_tree_by_node(exec, gradients, groups, expected, segs);
      const auto ranks = on_nodes(nodes, gradients, [&](const auto& comm, auto& gradient) {
        return adasum::adasum_allreduce(exec, comm, gradient, segs, order);
      });
      check_same(ranks, expected);
      for (const auto& rank : ranks)
        for (std::size_t r = 0; r < nodes.size(); ++r)
          CHECK(rank.found.weight(r, 1) == ranks.front().found.weight(r, 1));

      // Each rank a part of the result, of which a leader has all.
      const auto parts = on_nodes(nodes, gradients, [&](const auto& comm, auto& gradient) {
        auto plan = adasum::plan_reduce_scatter<double>(exec, comm, segs, order);
        auto found = plan(gradient);
        const auto mine = plan.part();
        gradient.assign(gradient.begin() + static_cast<std::ptrdiff_t>(mine.begin),
                        gradient.begin() + static_cast<std::ptrdiff_t>(mine.end));
        return adasum::report(found);
      });
      std::vector<double> whole;
      for (const auto& part : parts) whole.insert(whole.end(), part.gradient.begin(), part.gradient.end());
      CHECK(same_bits(whole, ranks.front().gradient));
    }
  }
}

TEST_CASE("leaders: a rank that fails leaves no other waiting, whether it leads or not") {
  adasum::schedules::automatic order{.on = adasum::schedules::machine{}};
  order.on->across.per_byte = 1e-6;
  const std::vector<int> nodes{0, 0, 0, 1, 1, 1};
  for (const int failing : {0, 1, 3, 5}) {
    CAPTURE(failing);
    const auto blocks = node_communicator::make_blocks();
    const auto ranks = on_ranks(6, [&](const adasum::thread_communicator& threads) {
      const node_communicator comm(threads, nodes, blocks);
      auto plan = adasum::plan_allreduce<float>(exec, comm, 64, order, adasum::options{.check_agreement = false});
      std::vector<float> gradient(64, 1), other(threads.rank() == failing ? 63 : 64, 1);
      plan(gradient);
      bool failed = false;
      try {
        plan(other);
      } catch (const adasum::error&) {
        failed = true;
      }
      plan(gradient);
      return failed;
    });
    for (const auto& rank : ranks) {
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(*rank.value);
    }
  }
}

TEST_CASE("on request, the tree of the ranks alone") {
  const std::vector<int> nodes{0, 0, 0, 1};
  const auto gradients = random_gradients<double>(4, 500, 1);
  std::vector<double> of_ranks(500), of_nodes(500);
  adasum::adasum_tree(exec, gradients, of_ranks);
  adasum::adasum_tree_by_node(exec, gradients, adasum::node_groups(nodes), of_nodes);
  CHECK(of_ranks != of_nodes);
  const auto reduced_by = [&](const adasum::schedules::automatic& order) {
    return on_nodes(nodes, gradients, [&](const auto& comm, auto& gradient) {
      return adasum::adasum_allreduce(exec, comm, gradient, order);
    });
  };
  check_same(reduced_by({}), of_nodes);
  check_same(reduced_by({.follows_nodes = false}), of_ranks);
}

TEST_CASE("weights are told per rank, in the order of ranks, with the name of the schedule") {
  const std::vector<int> nodes{0, 1, 0, 1, 1};
  for (const std::size_t length : {50u, 50'000u}) {
    const auto gradients = random_gradients<double>(nodes.size(), length, 3);
    const auto ranks = on_nodes(nodes, gradients, [&](const auto& comm, auto& gradient) {
      return adasum::adasum_allreduce(exec, comm, gradient);
    });
    const auto& found = ranks.front().found;
    CHECK(found.schedule() == "hierarchical");
    std::vector<double> from_weights(length);
    for (std::size_t r = 0; r < nodes.size(); ++r)
      for (std::size_t i = 0; i < length; ++i) from_weights[i] += found.weight(r, 0) * gradients[r][i];
    check_same(ranks, from_weights);
  }
}

TEST_CASE("a rank that ignores the nodes is a disagreement on every rank") {
  const std::vector<int> nodes{0, 0, 1, 1};
  const auto blocks = node_communicator::make_blocks();
  const auto ranks = on_ranks(4, [&](const adasum::thread_communicator& threads) {
    std::vector<float> gradient(5000, 1);
    adasum::adasum_allreduce(exec, node_communicator(threads, nodes, blocks), gradient,
                             adasum::schedules::automatic{.follows_nodes = threads.rank() != 2},
                             adasum::options{.check_agreement = true});
    return 0;
  });
  for (const auto& rank : ranks)
    CHECK(rank.message_of<adasum::agreement_error>().value_or("").find("schedule automatic") != std::string::npos);
}

TEST_CASE("the local tree: as many gradients as ranks") {
  const std::vector<std::vector<double>> gradients(3, std::vector<double>(5, 1));
  std::vector<double> out(5, 7);
  check_refused([&] { adasum::adasum_tree_by_node(exec, gradients, adasum::node_groups(std::vector{0, 0}), out); },
                "3 gradients for 2 ranks");
  CHECK(out == std::vector<double>(5, 7));
}

TEST_CASE("a communicator whose nodes() are not for its ranks is refused by name") {
  const auto blocks = node_communicator::make_blocks();
  for (const auto& rank : on_ranks(3, [&](const adasum::thread_communicator& threads) {
         const node_communicator comm(threads, {0, 0}, blocks);
         check_refused([&] { adasum::plan_allreduce<double>(exec, comm, 10); }, "nodes() has 2 numbers for 3 ranks");
         return 0;
       }))
    CHECK_MESSAGE(rank.value, rank.description());
}

}  // namespace test_of_allreduce_by_node
