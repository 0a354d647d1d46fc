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

/// The nodes as leaves of the tree for a prime number of them, by plain recursion: a perfect tree, the first leaves of which
/// are pairs.
bracketing of_prime(const std::vector<bracketing>& all) {
  std::size_t power = 1;
  while (power * 2 <= all.size()) power *= 2;
  std::vector<bracketing> nodes;
  for (std::size_t leaf = 0; leaf < all.size();) {
    const bool paired = leaf < 2 * (all.size() - power);
    nodes.push_back(paired ? join(all[leaf], all[leaf + 1]) : all[leaf]);
    leaf += paired ? 2 : 1;
  }
  const std::function<bracketing(std::size_t, std::size_t)> perfect = [&](std::size_t first, std::size_t last) {
    const auto middle = (first + last) / 2;
    return last - first == 1 ? nodes[first] : join(perfect(first, middle), perfect(middle, last));
  };
  return perfect(0, nodes.size());
}

/// The definition: at the root, as many subtrees meet as the largest prime factor says.
bracketing definition(std::size_t first, std::size_t leaves) {
  if (leaves == 1) return std::to_string(first);
  auto prime = leaves;
  for (std::size_t p = 2; p <= leaves; ++p)
    while (leaves % p == 0 && prime % p == 0 && prime > p) prime /= p;
  std::vector<bracketing> nodes;
  for (std::size_t i = 0; i < prime; ++i) nodes.push_back(definition(first + i * (leaves / prime), leaves / prime));
  return of_prime(nodes);
}
bracketing definition(std::size_t leaves) { return definition(0, leaves); }

/// What the tree would be if any number of leaves were combined as a prime one.
bracketing folded_once(std::size_t leaves) {
  std::vector<bracketing> all;
  for (std::size_t i = 0; i < leaves; ++i) all.push_back(std::to_string(i));
  return of_prime(all);
}

}  // namespace

TEST_CASE("for_each_merge brackets the leaves as the definition does") {
  for (std::size_t leaves = 1; leaves <= 130; ++leaves) {
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
  CHECK(definition(6) == "(((0 1) (2 3)) (4 5))");
  CHECK(definition(7) == "(((0 1) (2 3)) ((4 5) 6))");
  CHECK(definition(9) == "((((0 1) 2) ((3 4) 5)) ((6 7) 8))");
  CHECK(definition(15) == "(((((0 1) 2) ((3 4) 5)) ((6 7) 8)) (((9 10) 11) ((12 13) 14)))");
  CHECK(definition(18) == "(((((0 1) (2 3)) (4 5)) (((6 7) (8 9)) (10 11))) (((12 13) (14 15)) (16 17)))");
}

TEST_CASE("levels change nothing where no more than one prime factor is odd") {
  for (std::size_t leaves = 1; leaves <= 130; ++leaves) {
    CAPTURE(leaves);
    auto odd = leaves;
    while (odd % 2 == 0) odd /= 2;
    bool is_prime = true;
    for (std::size_t p = 3; p < odd; p += 2) is_prime = is_prime && odd % p != 0;
    CHECK((definition(leaves) == folded_once(leaves)) == is_prime);
  }
}

TEST_CASE("smallest_factor") {
  using adasum::detail::smallest_factor;
  CHECK(smallest_factor(2) == 2);
  CHECK(smallest_factor(3) == 3);
  CHECK(smallest_factor(12) == 2);
  CHECK(smallest_factor(15) == 3);
  CHECK(smallest_factor(15, 3) == 3);
  CHECK(smallest_factor(5, 3) == 5);
  CHECK(smallest_factor(49) == 7);
  CHECK(smallest_factor(143) == 11);
  CHECK(smallest_factor(1009) == 1009);
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
