// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/schedules/cost.hpp>
#include <adasum/schedules/transfers.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/counting_space.hpp"
#include "support/disagreements.hpp"
#include "support/failing_calls.hpp"
#include "support/hierarchical_formula.hpp"
#include "support/nodes.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_allreduce_by_large_nodes {

/// Nodes of more ranks than take one stage: level by level inside, in memory that a node shares or by messages, and then
/// across.

using namespace adasum;
using namespace adasum::test;
using schedules::all_to_all;
using schedules::hierarchical;
using schedules::recursive_halving;

namespace {

#ifdef ADASUM_TEST_SANITIZED
const std::vector<std::vector<int>> some_nodes{nodes_of({12, 10}), nodes_of({9, 1})};
#else
const std::vector<std::vector<int>>& some_nodes = large_arrangements;
#endif
const serial_space exec;
const rules::adasum rule;

/// function(communicator) on ranks of these nodes.
template <class Function>
auto on_nodes(const std::vector<int>& nodes, const Function& function) {
  const auto blocks = node_communicator::make_blocks();
  return on_ranks(static_cast<int>(nodes.size()), [&](const thread_communicator& threads) {
    return function(node_communicator(threads, nodes, blocks));
  });
}

/// Three runs in the buffer of make_plan(communicator): what the last gave.
template <class Comm, class T, class MakePlan>
reduced<T> in_buffer(const Comm& comm, const std::vector<std::vector<T>>& gradients, const MakePlan& make_plan) {
  auto plan = make_plan(comm);
  const auto buffer = plan.buffer();
  for (int run = 0; run < 3; ++run) {
    std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
    plan();
  }
  return {{buffer.begin(), buffer.end()}, plan.last_report()};
}

template <class T>
void check_ranks(const segments& segs, const std::vector<reduced<T>>& ranks, const std::vector<double>& expected,
                 const std::vector<std::vector<T>>& gradients) {
  check_same_on_all_ranks(ranks);
  check_close<T>(segs, ranks.front().gradient, expected, gradients);
}

/// Of rules that iterate, to the accuracy that they promise.
void check_iterated(const std::vector<reduced<double>>& ranks, const std::vector<double>& expected) {
  check_same_on_all_ranks(ranks);
  double error = 0, largest = 0;
  for (std::size_t x = 0; x < expected.size(); ++x) {
    error = std::max(error, std::abs(ranks.front().gradient[x] - expected[x]));
    largest = std::max(largest, std::abs(expected[x]));
  }
  CHECK(error <= 1e-10 * largest);
}

}  // namespace

TEST_CASE_TEMPLATE("the default on nodes of many ranks: the tree of the nodes, by calls, plans and in the buffer", T,
                   float, double) {
  for (const auto& nodes : some_nodes) {
    if (sizeof(T) > sizeof(float) && nodes.size() > 40) continue;  // all ranks of these choose for a minute
    for (const std::size_t length : {11u, 6'000u}) {
      CAPTURE(nodes.size());
      CAPTURE(length);
      const segments segs{length / 3, 0, length - length / 3 - 2, 2};
      const auto gradients = random_gradients<T>(nodes.size(), length, nodes.size());
      const auto expected = hierarchical_formula(segs, nodes, rule, rule, gradients);
      const auto mine = [&](const auto& comm) { return gradients[static_cast<std::size_t>(comm.rank())]; };
      const auto called = on_nodes(nodes, [&](const auto& comm) {
        auto gradient = mine(comm);
        auto found = adasum_allreduce(exec, comm, gradient, segs);
        return reduced<T>{std::move(gradient), std::move(found)};
      });
      check_ranks<T>(segs, results_of(called), expected, gradients);
      const auto planned = on_nodes(nodes, [&](const auto& comm) {
        return in_buffer(comm, gradients, [&](const auto& ranks) { return plan_allreduce<T>(exec, ranks, segs); });
      });
      check_ranks<T>(segs, results_of(planned), expected, gradients);
      CHECK(results_of(planned).front().found.schedule() == "hierarchical");
      // It is the tree that is told locally.
      std::vector<T> local(length);
      adasum_tree_by_node(exec, gradients, node_groups(nodes), local, segs);
      check_close<T>(segs, local, expected, gradients);
    }
  }
}

TEST_CASE("level by level inside nodes, for any radix, in place and by messages: another rule inside, or the same") {
  const segments segs{11, 0, 1'001, 12, 300};
  for (const auto& nodes : some_nodes)
    for (const std::size_t radix : {2u, 8u}) {
      CAPTURE(nodes.size());
      CAPTURE(radix);
      const auto gradients = random_gradients<double>(nodes.size(), segs.total(), radix);
      const auto check = [&]<class Rule>(const auto& inner, const auto& across, const Rule& outer_rule) {
        const auto expected = hierarchical_formula(segs, nodes, inner, outer_rule, gradients);
        const hierarchical order{nodes, inner, across, radix};
        const auto plan = [&](const auto& comm) { return plan_allreduce<double>(exec, comm, segs, outer_rule, order); };
        const auto in_place =
            results_of(on_nodes(nodes, [&](const auto& comm) { return in_buffer(comm, gradients, plan); }));
        if constexpr (pairwise_rule<Rule>)
          check_ranks<double>(segs, in_place, expected, gradients);
        else
          check_iterated(in_place, expected);
        // One communicator whose ranks all share memory: nodes with different numbers of levels lie in it.
        const auto together = results_of(on_ranks(static_cast<int>(nodes.size()), [&](const thread_communicator& comm) {
          return in_buffer(comm, gradients, plan);
        }));
        const auto sent = reduce_on_threads<double>(gradients, segs, outer_rule, order);
        for (std::size_t rank = 0; rank < nodes.size(); ++rank)
          for (const auto* const one : {&in_place, &together}) {
            // In place, the same is added in the same order.
            CHECK(same_bits((*one)[rank].gradient, sent[rank].gradient));
            for (std::size_t k = 0; k < segs.size(); ++k)
              CHECK((*one)[rank].found.weight(rank, k) == sent[0].found.weight(rank, k));
          }
      };
      check(rule, recursive_halving{}, rule);
      check(rules::mean{}, all_to_all{}, rule);
      check(rule, all_to_all{}, rules::geometric_median{});
      check(rules::unit_mean{}, recursive_halving{},
            rule);  // in one stage: it looks at all gradients of a node at once
    }
}

TEST_CASE("rules of the whole Gram matrix on nodes of many ranks: the default sends all to all") {
  const segments segs{7, 993, 500};
  for (const auto& nodes : some_nodes) {
    CAPTURE(nodes.size());
    const auto gradients = random_gradients<double>(nodes.size(), segs.total(), 3);
    std::vector<double> expected(segs.total());
    combine(exec, gradients, expected, rules::geometric_median{}, segs);
    const auto ranks = results_of(on_nodes(nodes, [&](const auto& comm) {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      auto found = combine_allreduce(exec, comm, gradient, rules::geometric_median{}, segs);
      return reduced<double>{std::move(gradient), std::move(found)};
    }));
    check_iterated(ranks, expected);
  }
}

TEST_CASE(
    "what each rank reads of the others and writes to them, inside its node and across, is what the model counts") {
  const segments segs{7, 1'001, 3'000};
  for (const auto& nodes : some_nodes)
    for (const std::size_t radix : {2u, 4u, 8u}) {
      CAPTURE(nodes.size());
      CAPTURE(radix);
      const hierarchical order{nodes, rule, recursive_halving{}, radix};
      const auto size = static_cast<int>(nodes.size());
      const auto ranks = results_of(on_nodes(nodes, [&](const auto& comm) {
        touched<float> counts;
        counting_space<float> space;
        space.counts = &counts;
        auto plan = plan_allreduce<float>(space, comm, segs, order, unchecked);
        const auto buffer = plan.buffer();
        const auto mine = random_gradients<float>(1, segs.total(), static_cast<std::uint64_t>(comm.rank())).front();
        std::ranges::copy(mine, buffer.begin());
        counts = {buffer.data(), buffer.size()};
        plan();
        return counts;
      }));
      const schedule_input what{.length = segs.total(), .element_size = sizeof(float), .segments = segs.size()};
      for (int rank = 0; rank < size; ++rank) {
        CAPTURE(rank);
        const auto node = nodes[static_cast<std::size_t>(rank)];
        std::vector<stage> inside;
        std::size_t received = 0;  // from other nodes, and read to measure and to mix
        std::size_t copied = 0;    // to messages that bring records, too
        for (const auto& one : order.stages(rank, size, what)) {
          if (nodes[static_cast<std::size_t>(one.members[one.self == 0 ? 1 : 0])] == node) {
            inside.push_back(one);
          } else {
            received += 2 * (one.members.size() - 1) * one.part().size() * sizeof(float);
            for (const auto& sent : detail::transfers_to_combine(one, detail::most_joined(sizeof(float), true)).sends)
              if (sent.joined) copied += sent.elements.size() * sizeof(float);
          }
          CHECK(one.members.size() <= std::max<std::size_t>(radix, 11));  // 11 is a prime factor of one node's ranks
        }
        const schedules::in_place_cost model(inside, rank, what);
        const auto& found = ranks[static_cast<std::size_t>(rank)];
        CHECK(found.read == model.read + received);
        CHECK(found.written == model.written + copied);
        // Where all ranks carry as much, each reads less than one gradient, twice.
        if (nodes == nodes_of({24, 24})) CHECK(model.read <= 2 * segs.total() * sizeof(float));
      }
    }
}

TEST_CASE("nodes of many ranks: gradients of no elements, and of fewer than there are carriers") {
  const auto nodes = nodes_of({10, 9});
  for (const auto& segs : {segments{0}, segments{1}, segments{3, 0, 5}}) {
    CAPTURE(segs.total());
    const auto gradients = random_gradients<double>(nodes.size(), segs.total(), 31);
    const hierarchical order{nodes, rule, recursive_halving{}, 2};
    const auto expected = hierarchical_formula(segs, nodes, rule, rule, gradients);
    const auto in_place = results_of(on_nodes(nodes, [&](const auto& comm) {
      return in_buffer(comm, gradients,
                       [&](const auto& some) { return plan_allreduce<double>(exec, some, segs, order); });
    }));
    check_ranks<double>(segs, in_place, expected, gradients);
    check_ranks<double>(segs, reduce_on_threads<double>(gradients, segs, rule, order), expected, gradients);
  }
}

TEST_CASE("nodes of many ranks: a part for each rank, with the bits of an allreduce") {
  const segments segs{7, 1'001, 300};
  for (const auto& nodes : {nodes_of({12, 12}), nodes_of({10, 9})}) {
    CAPTURE(nodes.size());
    const auto gradients = random_gradients<float>(nodes.size(), segs.total(), 17);
    const hierarchical order{nodes, rule, recursive_halving{}};
    const auto whole = reduce_on_threads<float>(gradients, segs, rule, order).front().gradient;
    for (const auto& given : some_parts(segs.total(), static_cast<int>(nodes.size()))) {
      const auto right = results_of(on_nodes(nodes, [&](const auto& comm) {
        auto plan = plan_reduce_scatter<float>(exec, comm, segs, given, order);
        const auto buffer = plan.buffer();
        bool all = plan.part() == given.of_rank(static_cast<std::size_t>(comm.rank()));
        for (int run = 0; run < 3; ++run) {
          std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], buffer.begin());
          plan();
          for (auto x = plan.part().begin; x < plan.part().end; ++x) all = all && buffer[x] == whole[x];
        }
        return all;
      }));
      for (const bool one : right) CHECK(one);
    }
  }
}

TEST_CASE("nodes of many ranks: gradients that are not finite are left out, and segments that cancel are recombined") {
  const segments segs{7, 200, 300};
  const auto nodes = nodes_of({10, 9});
  auto gradients = random_gradients<double>(nodes.size(), segs.total(), 5);
  for (const std::size_t pair : {0u, 9u, 16u})
    for (auto x = segs.offset(1); x < segs.offset(2); ++x)
      gradients[pair + 1][x] = -gradients[pair][x] + 1e-12 * gradients[pair + 1][x];
  gradients[4][3] = std::numeric_limits<double>::infinity();
  const hierarchical order{nodes, rule, recursive_halving{}, 2};
  const options leave_out{.check_agreement = false, .nonfinite = nonfinite_policy::exclude};
  const auto sent = reduce_on_threads<double>(gradients, segs, rule, order, leave_out);
  const auto in_place = results_of(on_nodes(nodes, [&](const auto& comm) {
    return in_buffer(comm, gradients,
                     [&](const auto& ranks) { return plan_allreduce<double>(exec, ranks, segs, order, leave_out); });
  }));
  CHECK(sent.front().found.recombined_segments() > 0);
  CHECK(sent.front().found.excluded().size() == 1);
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    CHECK(same_bits(in_place[rank].gradient, sent[rank].gradient));
    CHECK(in_place[rank].found.excluded().size() == 1);
  }
}

TEST_CASE(
    "nodes of many ranks: 16-bit messages across unequal nodes, the same result and the same report on all ranks") {
  const segments segs{7, 1'001, 300};
  const auto nodes = nodes_of({10, 9});
  const auto gradients = random_gradients<float>(nodes.size(), segs.total(), 29);
  const hierarchical order{nodes, rule, recursive_halving{}, 2};
  const options rounded{.check_agreement = false, .wire = wire_format::bfloat16};
  const auto ranks = results_of(on_nodes(nodes, [&](const auto& comm) {
    return in_buffer(comm, gradients,
                     [&](const auto& some) { return plan_allreduce<float>(exec, some, segs, order, rounded); });
  }));
  check_same_on_all_ranks(ranks);
  for (const auto& rank : ranks) CHECK(rank.found.wire() == wire_format::bfloat16);
  // An element is rounded by 2^-9 at most on its way to another node, and again as a part of the result. Inner products of
  // rounded vectors change by 2^-8, and weights by no more, as random gradients are nearly orthogonal. All that is 2^-7 of
  // what is combined; as much again for what the two nodes' combinations, which are shorter than their sum, lose together.
  const auto expected = hierarchical_formula(segs, nodes, rule, rule, gradients);
  for (std::size_t k = 0; k < segs.size(); ++k) {
    double error = 0, norm = 0;
    for (auto x = segs.offset(k); x < segs.offset(k + 1); ++x) {
      error += std::pow(ranks.front().gradient[x] - expected[x], 2);
      norm += std::pow(expected[x], 2);
    }
    CHECK(std::sqrt(error) <= std::ldexp(std::sqrt(norm), -6));
    CHECK(error > 0);  // they were rounded
  }
}

TEST_CASE("inside nodes, rules along the tree go by levels, and others in one stage; a radix below 2 is refused") {
  const auto nodes = nodes_of({48, 48});
  const schedule_input what{.length = 5'000, .element_size = 4};
  const auto inside = [&](const auto& order) {
    std::vector<std::size_t> members;
    for (const auto& one : order.stages(50, 96, what))
      if (one.inner) members.push_back(one.members.size());
    return members;
  };
  using numbers = std::vector<std::size_t>;
  CHECK(inside(hierarchical{nodes, rule}) == numbers{8, 6});
  CHECK(inside(hierarchical{nodes, rules::mean{}}) == numbers{8, 6});
  CHECK(inside(hierarchical{nodes, rule, all_to_all{}, 4}) == numbers{4, 4, 3});
  CHECK(inside(hierarchical{nodes, rules::geometric_median{}}) == numbers{48});
  CHECK(inside(hierarchical{nodes, rules::adasum_linear{}}) == numbers{48});  // from the left, not along the tree
  CHECK_THROWS_WITH_AS(inside(hierarchical{nodes, rule, all_to_all{}, 1}),
                       doctest::Contains("the radix 1 is less than 2"), bad_input);
}

TEST_CASE("nodes by levels: one that fails anywhere keeps nobody waiting, and the plan works again") {
  // Levels of 2 and 3 ranks, of which one stays behind; one stage of 5.
  const auto nodes = nodes_of({6, 5});
  const segments segs{7, 100, 53};
  const hierarchical order{nodes, rule, recursive_halving{}, 2};
  const auto gradients = random_gradients<float>(nodes.size(), segs.total(), 23);
  const auto expected = reduce_on_threads<float>(gradients, segs, rule, order).front().gradient;
  for (const std::size_t culprit : {0u, 4u, 5u, 7u})
    check_failing_calls(
        culprit, gradients, expected, [&](const auto& function) { return on_nodes(nodes, function); },
        [&](const auto& space, const auto& comm) {
          auto plan = plan_allreduce<float>(space, comm, segs, order, unchecked);
          const auto buffer = plan.buffer();
          return [plan = std::move(plan), buffer](std::vector<float>& gradient) mutable {
            std::ranges::copy(gradient, buffer.begin());
            plan();
            std::ranges::copy(buffer, gradient.begin());
          };
        });
}

}  // namespace test_of_allreduce_by_large_nodes
