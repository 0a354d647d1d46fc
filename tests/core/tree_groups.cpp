// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups and what is above them are the tree that they were cut from.
#include <adasum/core/tree_order.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include "support/sizes.hpp"

namespace test_of_core_tree_groups {

using namespace adasum;
using namespace adasum::test;

namespace {

using node = std::array<std::size_t, 3>;

}  // namespace

TEST_CASE("numbers of leaves × sizes of groups: the same nodes, children before parents") {
  for (std::size_t leaves = 1; leaves <= 300; ++leaves)
    for (const std::size_t most : sizes{1, 2, 3, 8, 16}) {
      CAPTURE(leaves);
      CAPTURE(most);
      const detail::tree_groups groups(leaves, most);
      std::vector<node> expected, found;
      for_each_merge(leaves, [&](auto... bounds) { expected.push_back({bounds...}); });
      std::vector<std::size_t> first;
      std::size_t end = 0, largest = 0;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const auto [begin, last] = groups.leaves(g);
        REQUIRE(begin == end);
        REQUIRE(last > begin);
        REQUIRE(last - begin <= most);
        end = last;
        largest = std::max(largest, last - begin);
        first.push_back(begin);
        std::vector<std::size_t> complete(last - begin, 1);  // leaves of the node that begins at each
        for (const auto& m : groups.within(g)) {
          REQUIRE(complete[m.first] == m.middle - m.first);
          REQUIRE(complete[m.middle] == m.last - m.middle);
          complete[m.first] = m.last - m.first;
          found.push_back({begin + m.first, begin + m.middle, begin + m.last});
        }
        REQUIRE(complete[0] == last - begin);
      }
      REQUIRE(end == leaves);
      REQUIRE(groups.largest() == largest);
      first.push_back(leaves);
      std::vector<std::size_t> complete(groups.size(), 1);
      for (const auto& m : groups.above()) {
        REQUIRE(complete[m.first] == m.middle - m.first);
        REQUIRE(complete[m.middle] == m.last - m.middle);
        complete[m.first] = m.last - m.first;
        REQUIRE(first[m.last] - first[m.first] > most);  // or it would be in a group
        found.push_back({first[m.first], first[m.middle], first[m.last]});
      }
      std::ranges::sort(expected);
      std::ranges::sort(found);
      REQUIRE(found == expected);
    }
}

TEST_CASE("where groups have room for eight, none of three leaves or more has fewer than three") {
  for (std::size_t leaves = 3; leaves <= 3000; ++leaves)
    for (const std::size_t most : {std::size_t{8}, leaves / 64}) {
      if (most < 8) continue;
      CAPTURE(leaves);
      const detail::tree_groups groups(leaves, most);
      for (std::size_t g = 0; g < groups.size(); ++g) REQUIRE(groups.leaves(g).size() >= 3);
    }
}

TEST_CASE("32 leaves in groups of 8; 37, where the first leaves are folded") {
  const detail::tree_groups even(32, 8);
  CHECK(even.size() == 4);
  CHECK(even.leaves(1) == index_range{8, 16});
  CHECK(even.above().size() == 3);
  CHECK(even.within(3).size() == 7);
  const detail::tree_groups folded(37, 8);
  CHECK(folded.leaves(0) == index_range{0, 8});
  CHECK(folded.leaves(1) == index_range{8, 13});
}

}  // namespace test_of_core_tree_groups
