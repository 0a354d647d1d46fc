// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/levels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <adasum/schedules/recursive_halving.hpp>

namespace test_of_schedules_node_levels {

using adasum::index_range;
using adasum::detail::level_tree;
using adasum::detail::one_level;

namespace {

using numbers = std::vector<std::size_t>;

level_tree node_levels(std::size_t ranks, std::size_t shares, std::size_t radix) {
  return {ranks, radix, adasum::detail::large_primes::kept, shares};
}

numbers members(std::size_t ranks, std::size_t shares, std::size_t radix, std::size_t place = 0) {
  numbers found;
  for (const auto& one : node_levels(ranks, shares, radix).stages(place, {0, 1000}))
    found.push_back(one.members.size());
  return found;
}

}  // namespace

TEST_CASE("node levels: as many ranks at each as the radix allows, and nobody is folded") {
  CHECK(members(48, 48, 8) == numbers{8, 6});
  CHECK(members(48, 48, 4) == numbers{4, 4, 3});
  CHECK(members(64, 64, 8) == numbers{8, 8});
  CHECK(members(22, 22, 8) == numbers{2, 11});
  CHECK(members(97, 97, 8) == numbers{97});
  CHECK(members(8, 8, 8) == numbers{8});
  CHECK(members(96, 96, one_level) == numbers{96});
  CHECK(members(1, 1, 8) == numbers{1});
}

TEST_CASE("node levels: five shares of six ranks, as the comment shows") {
  const auto node = node_levels(6, 5, 2);
  const numbers carriers{0, 2, 1, 3, 5};
  for (std::size_t share = 0; share < 5; ++share) {
    CHECK(node.carriers()[share] == carriers[share]);
    CHECK(node.share_of(carriers[share]) == share);
  }
  CHECK_FALSE(node.share_of(4));
  const auto waiting = node.stages(4, {0, 50});
  REQUIRE(waiting.size() == 2);
  CHECK(waiting[0].survives());
  CHECK(waiting[0].part() == index_range{0, 20});
  CHECK_FALSE(waiting[1].survives());
  CHECK(waiting[1].members == std::vector{0, 2, 4});
  const auto other = node.stages(5, {0, 50});
  CHECK(other[1].part() == index_range{40, 50});
  CHECK(other[1].sum_over == std::vector{0, 1, 2, 3, 5});
}

TEST_CASE("node levels: each share has a carrier of its own, whose elements depend on the number of shares alone") {
  for (std::size_t ranks = 1; ranks <= 50; ++ranks)
    for (std::size_t shares = 1; shares <= ranks; ++shares)
      for (const std::size_t radix : {2u, 4u, 8u}) {
        CAPTURE(ranks);
        CAPTURE(shares);
        CAPTURE(radix);
        const auto node = node_levels(ranks, shares, radix);
        const auto places = node.carriers();
        REQUIRE(places.size() == shares);
        std::set<std::size_t> carriers;
        for (std::size_t share = 0; share < shares; ++share) {
          const auto place = places[share];
          carriers.insert(place);
          const auto last = node.stages(place, {0, 997}).back();
          REQUIRE(last.survives());
          CHECK(last.part() == adasum::detail::part_of({0, 997}, shares, share));
          CHECK(node.stages(place, {0, 997}, 1).back().part() == index_range{0, 997});
        }
        CHECK(carriers.size() == shares);
        CHECK(carriers.contains(0));
      }
}

TEST_CASE("node levels: with as many shares as ranks, those who meet and add are those of recursive halving") {
  for (const std::size_t ranks : {9u, 16u, 24u, 48u, 100u})
    for (const std::size_t radix : {2u, 4u, 8u})
      for (std::size_t place = 0; place < ranks; place += 7) {
        CAPTURE(ranks);
        CAPTURE(radix);
        const auto found = node_levels(ranks, ranks, radix).stages(place, {0, 100 * ranks});
        const auto expected = adasum::schedules::recursive_halving{radix}.stages(
            static_cast<int>(place), static_cast<int>(ranks), {.length = 100 * ranks, .element_size = 4});
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].members == expected[i].members);
          CHECK(found[i].leaf_offsets == expected[i].leaf_offsets);
          CHECK(found[i].parts == expected[i].parts);
          CHECK(found[i].sum_over == expected[i].sum_over);
          CHECK(found[i].grouped);
        }
      }
}

}  // namespace test_of_schedules_node_levels
