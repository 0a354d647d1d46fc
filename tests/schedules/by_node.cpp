// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/by_node.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/cheapest.hpp>
#include <adasum/schedules/choice.hpp>
#include <adasum/schedules/cost.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/testing/schedule.hpp>

#include "support/arrangements.hpp"

namespace test_of_schedules_by_node {

namespace detail = adasum::detail;

using adasum::schedule_input;
using namespace adasum::schedules;
using adasum::test::arrangements;
using adasum::test::large_arrangements;
using adasum::test::nodes_of;

namespace {

/// Stages by node, as a schedule by itself.
template <class Outer>
struct by_node {
  static constexpr std::string_view name = "by_node";
  static constexpr bool supports_gram_rules = false;

  adasum::node_groups groups;
  carried each;
  Outer outer{};
  std::size_t radix_inside = detail::one_level;
  friend bool operator==(const by_node&, const by_node&) { return true; }  // one at a time

  std::vector<adasum::stage> stages(int rank, int, const schedule_input& input) const {
    return stages_by_node(
        adasum::node_leaves(groups), rank, input, {.each = each, .radix = radix_inside},
        [&](int node, int nodes, const schedule_input& among) { return outer.stages(node, nodes, among); });
  }
  std::vector<int> leaf_ranks(int, const schedule_input&) const { return adasum::node_leaves(groups).ranks(); }
};

/// The tree over the leaves of each node, and then over the nodes, written out.
std::string tree_by_node(const adasum::node_groups& groups) {
  const adasum::node_leaves all(groups);
  std::vector<std::string> nodes;
  for (std::size_t node = 0; node < groups.size(); ++node) {
    std::vector<std::string> leaves;
    for (auto leaf = all.at(node); leaf < all.at(node + 1); ++leaf) leaves.push_back(std::to_string(leaf));
    nodes.push_back(detail::combined(leaves));
  }
  return detail::combined(nodes);
}

template <class Schedule>
void check_tree(const Schedule& order, const std::vector<int>& node_of_rank, const schedule_input& input) {
  const auto size = static_cast<int>(node_of_rank.size());
  CAPTURE(size);
  CAPTURE(input.length);
  CHECK_NOTHROW(adasum::check_schedule(order, size, input));
  detail::schedule_simulation ranks(order, size, input);
  ranks.combine();
  CHECK_NOTHROW(ranks.require_root(tree_by_node(adasum::node_groups(node_of_rank))));
}

schedule_input floats(std::size_t length, const std::vector<int>& node_of_rank) {
  return {.length = length, .element_size = 4, .segments = 3, .nodes = node_of_rank};
}

}  // namespace

TEST_CASE("nodes first, then across them: one tree, whatever is carried and by whichever schedule") {
  for (const auto& nodes : arrangements)
    for (const std::size_t length : {0u, 1u, 3u, 1000u, 100'003u}) {
      const adasum::node_groups groups(nodes);
      const auto input = floats(length, nodes);
      check_tree(by_node<recursive_halving>{groups, carried::shard}, nodes, input);
      check_tree(by_node<recursive_halving>{groups, carried::shard, {.radix = 4}}, nodes, input);
      check_tree(by_node<recursive_doubling>{groups, carried::shard}, nodes, input);
      check_tree(by_node<all_to_all>{groups, carried::shard}, nodes, input);
      check_tree(by_node<recursive_doubling>{groups, carried::whole}, nodes, input);
      check_tree(by_node<recursive_doubling>{groups, carried::whole_by_leader}, nodes, input);
      check_tree(by_node<recursive_halving>{groups, carried::whole_by_leader, {.radix = 4}}, nodes, input);
    }
}

TEST_CASE("nodes of many ranks, level by level: the tree of one stage, and Gram matrices of a level") {
  const std::size_t lengths[] = {1, 11, 5000};
  std::size_t turn = 0;  // each radix has each length, with other nodes
  for (const auto& nodes : large_arrangements) {
    for (const std::size_t radix : {2u, 4u, 8u}) {
      CAPTURE(radix);
      const adasum::node_groups groups(nodes);
      const auto input = floats(lengths[turn++ % 3], nodes);
      const auto check = [&](const auto& order) {
        check_tree(order, nodes, input);
        for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank)
          for (const auto& one : order.stages(rank, static_cast<int>(nodes.size()), input))
            CHECK(one.members.size() <= std::max<std::size_t>(radix, 11));  // a prime factor of 11 is a level
      };
      check(by_node<recursive_halving>{groups, carried::shard, {}, radix});
      check(by_node<all_to_all>{groups, carried::shard, {}, radix});
      check(by_node<recursive_doubling>{groups, carried::whole, {}, radix});
      check(by_node<recursive_halving>{groups, carried::whole_by_leader, {}, radix});
    }
    ++turn;
  }
}

TEST_CASE("nodes of many ranks, level by level: as many elements are sent, and each carrier sends as many across") {
  for (const auto& nodes : large_arrangements) {
    const adasum::node_groups groups(nodes);
    const auto size = static_cast<int>(nodes.size());
    CAPTURE(size);
    const std::size_t length = 9240;
    const auto input = floats(length, nodes);
    const auto sent = [&](std::size_t radix) {
      const by_node<all_to_all> order{groups, carried::shard, {}, radix};
      std::size_t all = 0;
      for (int rank = 0; rank < size; ++rank) all += cost_of(order, rank, size, input).elements;
      return all;
    };
    // Inside a node of R ranks, 2N(R - 1): in one stage (R - 1)N and back, and by levels so for each group.
    for (const std::size_t radix : {2u, 4u, 8u}) CHECK(sent(radix) == sent(detail::one_level));
    for (int rank = 0; rank < size; ++rank) {
      const auto stages = by_node<all_to_all>{groups, carried::shard, {}, 8}.stages(rank, size, input);
      const auto& last = stages.back();
      if (last.survives()) CHECK(last.held.size() <= length / groups.smallest() + 1);
    }
  }
}

TEST_CASE("each rank of a node carries its share across, and nothing else leaves the node") {
  for (const int per_node : {1, 2, 4, 8})
    for (const int count : {2, 3, 4, 8}) {
      std::vector<int> nodes;
      for (int rank = 0; rank < count * per_node; ++rank) nodes.push_back(rank / per_node);
      CAPTURE(per_node);
      CAPTURE(count);
      const std::size_t length = 840'000;
      const auto input = floats(length, nodes);
      const by_node<all_to_all> order{adasum::node_groups(nodes), carried::shard};
      for (int rank = 0; rank < count * per_node; ++rank) {
        const auto cost = cost_of(order, rank, count * per_node, input);
        const auto across = cost.busier_bytes - cost.inside.busier_bytes;
        const auto share = 2 * (length * 4 / static_cast<std::size_t>(per_node)) *
                           (static_cast<std::size_t>(count) - 1) / static_cast<std::size_t>(count);
        CHECK(across >= share);
        CHECK(across <= share + share / 50);  // inner products, and what the report needs
      }
    }
}

TEST_CASE("a leader carries the whole of its node across, and the other ranks send nothing out of it") {
  const auto nodes = nodes_of({4, 4, 3, 4});
  const auto size = static_cast<int>(nodes.size());
  const std::size_t length = 840'000, bytes = length * 4;
  const auto input = floats(length, nodes);
  for (const std::size_t radix : {std::size_t{2}, detail::one_level}) {
    const by_node<recursive_doubling> order{adasum::node_groups(nodes), carried::whole_by_leader, {}, radix};
    for (int rank = 0; rank < size; ++rank) {
      CAPTURE(rank);
      const bool leads =
          rank == 0 || nodes[static_cast<std::size_t>(rank)] != nodes[static_cast<std::size_t>(rank) - 1];
      const auto cost = cost_of(order, rank, size, input);
      const auto across = cost.busier_bytes - cost.inside.busier_bytes;
      if (!leads) CHECK(across == 0);
      if (leads) CHECK(across >= 2 * bytes);  // two levels, of two nodes each
      if (leads) CHECK(across <= 2 * bytes + bytes / 50);
    }
  }
}

TEST_CASE("automatic follows the nodes: the same tree for every length, and that of the ranks alone on request") {
  for (const auto& nodes : arrangements) {
    const adasum::node_groups groups(nodes);
    const auto size = static_cast<int>(nodes.size());
    if (groups.size() == 1 || groups.size() == nodes.size()) continue;
    for (const std::size_t length : {0u, 5u, 256u, 300u, 5'000u, 60'000u, 2'000'000u}) {
      auto input = floats(length, nodes);
      check_tree(automatic{}, nodes, input);
      CHECK(automatic{}.chosen_name(size, input) == "hierarchical");
      if (automatic{}.uses_shared_memory(size, input) != adasum::shared_memory_use::none) {
        input.in_place = true;
        check_tree(automatic{}, nodes, input);
      }
      input = floats(length, nodes);
      const automatic ignores{.in_place = true, .follows_nodes = false};
      CHECK(ignores.leaf_ranks(size, input).empty());
      CHECK_NOTHROW(adasum::check_schedule(ignores, size, input));  // of the tree of the ranks, too
    }
  }
}

TEST_CASE("automatic follows nodes of many ranks by the levels that cost least, in place and by messages") {
  bool in_place = false;
  for (const auto& nodes : large_arrangements)
    for (const std::size_t length : {20u, 3'000u, 1'000'000u}) {
      in_place = !in_place;  // as there are three lengths, the next nodes have the other
      auto input = floats(length, nodes);
      input.in_place = in_place;
      const auto size = static_cast<int>(nodes.size());
      CAPTURE(size);
      CAPTURE(length);
      CAPTURE(in_place);
      check_tree(automatic{}, nodes, input);
      const auto chosen = detail::choose_schedule(size, input);
      const adasum::node_leaves leaves{adasum::node_groups(nodes)};
      const auto most = leaves.groups().ranks(leaves.groups().largest());
      const auto time = [&](detail::choice one, std::size_t radix) {
        one.radix_inside = radix;
        const auto stages = one.stages(most.front(), size, input);
        return detail::seconds_of(stages, detail::stages_in_memory(stages, input), most.front(), size, input, {},
                                  detail::carriers_of_node(leaves.groups(), *one.by_node));
      };
      for (const std::size_t radix : {2u, 4u, 8u})
        CHECK((length < 1'000 || time(chosen, chosen.radix_inside) <= time(chosen, radix)));
      CHECK(chosen.radix_inside <= detail::widest_radix);
    }
  // Up to eight ranks of a node, one stage.
  for (const auto& nodes : {nodes_of({8, 8}), nodes_of({8, 3})})
    CHECK(detail::choose_schedule(static_cast<int>(nodes.size()), floats(100'000, nodes)).radix_inside ==
          detail::one_level);
}

TEST_CASE("automatic in place counts what ranks of a node read in memory, not messages") {
  const auto nodes = nodes_of({48, 48});
  auto input = floats(1'000'000, nodes);
  const auto chosen = [&](const machine& on) { return detail::choose_schedule(96, input, on).radix_inside; };
  const machine barriers{.shared = {.barrier = 1}}, products{.per_product = 1e-6};
  input.in_place = true;
  CHECK(chosen(barriers) >= 8);  // few levels
  CHECK(chosen(products) == 2);
  input.in_place = false;
  CHECK(chosen(machine{.inside = {.latency = 1}}) >= 8);
}

TEST_CASE("stages inside a node are by the rule inside if that is said, and stages across nodes never") {
  const std::vector<int> nodes{0, 0, 1, 1};
  const auto input = floats(100, nodes);
  const auto by_rule_inside = [&](const inside_node& inside) {
    std::vector<bool> all;
    for (const auto& one : stages_by_node(
             adasum::node_leaves(adasum::node_groups(nodes)), 0, input, inside,
             [](int node, int count, const auto&among) { return recursive_halving{}.stages(node, count, among); }))
      all.push_back(one.inner);
    return all;
  };
  CHECK(by_rule_inside({}) == std::vector{false, false});
  CHECK(by_rule_inside({.by_inner_rule = true}) == std::vector{true, false});
}

TEST_CASE("short gradients are carried whole, long ones by shards") {
  const std::vector<int> nodes{0, 0, 1, 1};
  CHECK(detail::choose_schedule(4, floats(64, nodes)).by_node == carried::whole);
  CHECK(detail::choose_schedule(4, floats(1 << 20, nodes)).by_node == carried::shard);
  // One rank's messages, where four would share the link and each pay for the inner products of all segments.
  const auto sixteen = nodes_of({4, 4, 4, 4});
  auto of_layers = floats(1024, sixteen);
  of_layers.segments = 64;
  CHECK(detail::choose_schedule(16, of_layers).by_node == carried::whole_by_leader);
  // Halving sends each rank's half of the shard; all to all among many nodes would wait for too many messages.
  std::vector<int> many;
  for (int rank = 0; rank < 512; ++rank) many.push_back(rank / 8);
  CHECK(detail::choose_schedule(512, floats(16'384, many)).which == detail::choice::halving);
}

}  // namespace test_of_schedules_by_node
