// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedule/folding.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test_of_schedule_folding {

using adasum::index_range;
using adasum::detail::fold;
using adasum::detail::goes_on;
using adasum::detail::subtree_numbering;

TEST_CASE("fold: pairs of the first ranks, so many that a power of two goes on") {
  const index_range all{0, 9};
  for (int size = 2; size <= 40; ++size) {
    CAPTURE(size);
    int going_on = 0;
    for (int rank = 0; rank < size; ++rank) going_on += goes_on(fold(rank, size, all));
    CHECK(going_on <= size);
    CHECK(2 * going_on > size);
    CHECK((going_on & (going_on - 1)) == 0);
  }
}

TEST_CASE("fold: the first of a pair combines both vectors, the other one waits") {
  const auto keeper = fold(2, 6, {0, 9}), waiting = fold(3, 6, {0, 9});
  REQUIRE(keeper.size() == 1);
  REQUIRE(waiting.size() == 1);
  for (const auto& one : {keeper.front(), waiting.front()}) {
    CHECK(one.members == std::vector{2, 3});
    CHECK(one.leaf_offsets == std::vector<std::size_t>{2, 3, 4});
    CHECK(one.survivors == 1);
    CHECK(one.parts == std::vector{index_range{0, 9}});
    CHECK(one.sum_over == std::vector{2});
  }
  CHECK(goes_on(keeper));
  CHECK_FALSE(goes_on(waiting));
  CHECK(fold(4, 6, {0, 9}).empty());  // 6 = 4 + 2: only the first four ranks are folded
  CHECK(fold(3, 8, {0, 9}).empty());
}

TEST_CASE("fold: a rank alone meets itself") {
  const auto alone = fold(0, 1, {0, 9});
  REQUIRE(alone.size() == 1);
  CHECK(alone.front().members == std::vector{0});
  CHECK(alone.front().survives());
}

TEST_CASE("subtrees: held by their first ranks, and numbered in the order of the leaves") {
  const subtree_numbering of_six(6);  // (0 1) (2 3) 4 5
  CHECK(of_six.count() == 4);
  for (std::size_t subtree = 0; subtree < 4; ++subtree) {
    CHECK(of_six.rank_of(subtree) == std::vector{0, 2, 4, 5}[subtree]);
    CHECK(of_six.subtree_of(of_six.rank_of(subtree)) == subtree);
  }
  CHECK(of_six.subtree_of(1) == 0);
  CHECK(of_six.neighbourhood(2, 2) == std::vector{4, 5});
  CHECK(of_six.neighbourhood(2, 4) == std::vector{0, 2, 4, 5});
}

TEST_CASE("subtrees meet by one digit of their numbers, with their leaves in order") {
  const subtree_numbering of_six(6);
  const auto near = of_six.meet(3, 1, 2), far = of_six.meet(3, 2, 2), all = of_six.meet(1, 1, 4);
  CHECK(near.members == std::vector{4, 5});
  CHECK(near.self == 1);
  CHECK(near.leaf_offsets == std::vector<std::size_t>{4, 5, 6});
  CHECK(far.members == std::vector{2, 5});
  CHECK(far.self == 1);
  CHECK(far.leaf_offsets == std::vector<std::size_t>{0, 4, 6});
  CHECK(all.members == std::vector{0, 2, 4, 5});
  CHECK(all.self == 1);
  CHECK(all.leaf_offsets == std::vector<std::size_t>{0, 2, 4, 5, 6});
}

}  // namespace test_of_schedule_folding
