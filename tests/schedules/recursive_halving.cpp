// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/schedules/recursive_halving.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace test_of_schedules_recursive_halving {

using adasum::index_range;
using adasum::schedule_input;
using adasum::schedules::recursive_halving;

namespace {

std::vector<adasum::stage> stages(std::size_t radix, int rank, int size) {
  return recursive_halving{.radix = radix}.stages(rank, size, schedule_input{1000, 4, 1, true});
}

}  // namespace

TEST_CASE("halving: each stage halves what a rank holds, and doubles the distance") {
  const auto of_five = stages(2, 5, 8);
  REQUIRE(of_five.size() == 3);
  CHECK(of_five[0].members == std::vector{4, 5});
  CHECK(of_five[0].part() == index_range{500, 1000});
  CHECK(of_five[1].members == std::vector{5, 7});
  CHECK(of_five[1].part() == index_range{500, 750});
  CHECK(of_five[1].sum_over == std::vector{4, 5, 6, 7});
  CHECK(of_five[2].members == std::vector{1, 5});
  CHECK(of_five[2].part() == index_range{625, 750});
  CHECK(of_five[2].sum_over == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("halving: numbers of stages") {
  CHECK(stages(2, 3, 16).size() == 4);
  CHECK(stages(4, 3, 16).size() == 2);
  CHECK(stages(4, 3, 32).size() == 3);  // 4 · 4 · 2
  CHECK(stages(8, 3, 4).size() == 1);
  CHECK(stages(2, 3, 24).size() == 4);
  CHECK(stages(4, 3, 24).size() == 3);    // 4 · 2 · 3
  CHECK(stages(6, 3, 24).size() == 2);    // 4 · 6
  CHECK(stages(20, 3, 100).size() == 2);  // 20 · 5
  CHECK(stages(8, 3, 1000).size() == 4);  // 8 · 5 · 5 · 5
  CHECK(stages(32, 16, 17).size() == 1);  // not folded: the radix allows 17
  CHECK(stages(2, 0, 17).size() == 5);    // keeps a folded pair
  CHECK(stages(2, 1, 17).size() == 1);    // is folded away
  CHECK(stages(2, 16, 17).size() == 4);   // is a node by itself
}

TEST_CASE("halving: thirds and fifths") {
  const auto of_seven = stages(2, 7, 15);  // 1 + 3 · 2
  REQUIRE(of_seven.size() == 2);
  CHECK(of_seven[0].members == std::vector{6, 7, 8});
  CHECK(of_seven[0].part() == index_range{333, 666});
  CHECK(of_seven[0].sum_over == std::vector{6, 7, 8});
  CHECK(of_seven[1].members == std::vector{1, 4, 7, 10, 13});
  CHECK(of_seven[1].held == of_seven[0].part());
  CHECK(of_seven[1].part() == index_range{466, 532});
  CHECK(of_seven[1].sum_over.size() == 15);
}

TEST_CASE("halving up to a number of parts, doubling above") {
  const auto of = [](recursive_halving order, int rank, int size) {
    return order.stages(rank, size, schedule_input{1000, 4, 1, true});
  };
  const auto stages = of({.radix = 4, .most_parts = 16}, 37, 256);  // 1 + 4 · (1 + 4 · 2)
  REQUIRE(stages.size() == 4);
  CHECK(stages[1].members == std::vector{33, 37, 41, 45});
  CHECK(stages[1].part() == index_range{312, 375});
  CHECK_FALSE(stages[1].replicated());
  const std::vector block{32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47};
  CHECK(stages[1].sum_over == block);
  CHECK(stages[2].members == std::vector{5, 21, 37, 53});
  CHECK(stages[3].members == std::vector{37, 101, 165, 229});
  for (const std::size_t i : {2u, 3u}) {
    CHECK(stages[i].replicated());
    CHECK(stages[i].part() == stages[1].part());
    CHECK(stages[i].sum_over == block);
  }
  CHECK(of({.radix = 4, .most_parts = 15}, 37, 256)[1].replicated());
  CHECK(of({.radix = 4, .most_parts = 1}, 37, 256)[0].replicated());
  CHECK_THROWS_WITH_AS(of({.most_parts = 0}, 0, 4), doctest::Contains("most_parts is 0"), adasum::bad_input);
}

TEST_CASE("the radix of halving is at least 2") {
  for (const std::size_t radix : {0u, 1u}) {
    CAPTURE(radix);
    CHECK_THROWS_WITH_AS(stages(radix, 0, 4), doctest::Contains(("radix " + std::to_string(radix)).c_str()),
                         adasum::bad_input);
  }
  for (const std::size_t radix : {3u, 6u, 12u}) CHECK_NOTHROW(stages(radix, 0, 4));
}

}  // namespace test_of_schedules_recursive_halving
