// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/tree_order.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/sizes.hpp"

namespace test_of_core_tree_order {

namespace {

using bracketing = std::string;  // "((0 1) 2)"

bracketing join(const bracketing& a, const bracketing& b) { return "(" + a + " " + b + ")"; }

/// The definition, by plain recursion: the perfect tree over nodes, the first of which are pairs of leaves.
bracketing definition(std::size_t leaves) {
  std::size_t power = 1;
  while (power * 2 <= leaves) power *= 2;
  std::vector<bracketing> nodes;
  for (std::size_t leaf = 0; leaf < leaves;) {
    const bool paired = leaf < 2 * (leaves - power);
    nodes.push_back(paired ? join(std::to_string(leaf), std::to_string(leaf + 1)) : std::to_string(leaf));
    leaf += paired ? 2 : 1;
  }
  const std::function<bracketing(std::size_t, std::size_t)> perfect = [&](std::size_t first, std::size_t last) {
    const auto middle = (first + last) / 2;
    return last - first == 1 ? nodes[first] : join(perfect(first, middle), perfect(middle, last));
  };
  return perfect(0, nodes.size());
}

}  // namespace

TEST_CASE("for_each_merge brackets the leaves as the definition does") {
  for (std::size_t leaves = 1; leaves <= 40; ++leaves) {
    CAPTURE(leaves);
    std::map<std::size_t, std::pair<bracketing, std::size_t>> nodes;  // by first leaf: bracketing, end
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) nodes[leaf] = {std::to_string(leaf), leaf + 1};
    std::size_t merges = 0;
    adasum::for_each_merge(leaves, [&](std::size_t first, std::size_t middle, std::size_t last) {
      ++merges;
      REQUIRE(nodes.at(first).second == middle);  // children come before parents
      REQUIRE(nodes.at(middle).second == last);
      nodes[first] = {join(nodes[first].first, nodes[middle].first), last};
      nodes.erase(middle);
    });
    CHECK(merges == leaves - 1);
    REQUIRE(nodes.size() == 1);
    CHECK(nodes[0].first == definition(leaves));
  }
}

TEST_CASE("known trees") {
  CHECK(definition(2) == "(0 1)");
  CHECK(definition(3) == "((0 1) 2)");
  CHECK(definition(4) == "((0 1) (2 3))");
  CHECK(definition(5) == "(((0 1) 2) (3 4))");
  CHECK(definition(7) == "(((0 1) (2 3)) ((4 5) 6))");
}

TEST_CASE("for_each_merge of no leaf or one visits nothing") {
  for (const std::size_t leaves : adasum::test::sizes{0, 1})
    adasum::for_each_merge(leaves, [](auto...) { FAIL("visited"); });
}

TEST_CASE("leaf_folding numbers nodes and leaves consistently") {
  for (std::size_t leaves = 1; leaves <= 40; ++leaves) {
    CAPTURE(leaves);
    const auto folding = adasum::detail::leaf_folding::of(leaves);
    CHECK((folding.nodes & (folding.nodes - 1)) == 0);
    CHECK(folding.nodes <= leaves);
    CHECK(2 * folding.nodes > leaves);
    CHECK(folding.first_leaf(0) == 0);
    CHECK(folding.first_leaf(folding.nodes) == leaves);
    for (std::size_t node = 0; node < folding.nodes; ++node)
      for (auto leaf = folding.first_leaf(node); leaf < folding.first_leaf(node + 1); ++leaf)
        CHECK(folding.node_of(leaf) == node);
  }
}

}  // namespace test_of_core_tree_order
