// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/recursive_doubling.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <adasum/core/error.hpp>

namespace test_of_schedules_recursive_doubling {

using adasum::index_range;
using adasum::schedules::recursive_doubling;

TEST_CASE("doubling: whole vectors at distances 1, 2, 4, and no sum over ranks") {
  const auto stages = recursive_doubling{}.stages(5, 8, {1000, 4, 1, true});
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].members == std::vector{4, 5});
  CHECK(stages[1].members == std::vector{5, 7});
  CHECK(stages[2].members == std::vector{1, 5});
  for (const auto& one : stages) {
    CHECK(one.held == index_range{0, 1000});
    CHECK(one.part() == one.held);
    CHECK(one.replicated());
    CHECK(one.sum_over == std::vector{5});
  }
}

TEST_CASE("doubling: one exchange for each prime factor; only a large prime is folded") {
  const auto number = [](int rank, int size) {
    return recursive_doubling{}.stages(rank, size, {10, 4, 1, true}).size();
  };
  CHECK(number(3, 16) == 4);
  CHECK(number(3, 24) == 4);
  CHECK(number(3, 7) == 1);
  CHECK(number(99, 100) == 4);
  CHECK(number(999, 1000) == 6);
  CHECK(number(0, 17) == 5);   // keeps a folded pair
  CHECK(number(1, 17) == 1);   // is folded away
  CHECK(number(16, 17) == 4);  // is a node by itself
  const auto of_nine = recursive_doubling{}.stages(4, 9, {1000, 4, 1, true});
  REQUIRE(of_nine.size() == 2);
  CHECK(of_nine[0].members == std::vector{3, 4, 5});
  CHECK(of_nine[1].members == std::vector{1, 4, 7});
  for (const auto& one : of_nine) {
    CHECK(one.replicated());
    CHECK(one.survivors == 3);
    CHECK(one.sum_over == std::vector{4});
  }
}

TEST_CASE("doubling: with a wider radix, more ranks meet at once") {
  const auto stages = recursive_doubling{.radix = 4}.stages(5, 32, {1000, 4, 1, true});
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].members == std::vector{4, 5, 6, 7});
  CHECK(stages[1].members == std::vector{1, 5, 9, 13});
  CHECK(stages[2].members == std::vector{5, 21});
  for (const auto& one : stages) {
    CHECK(one.replicated());
    CHECK(one.part() == index_range{0, 1000});
    CHECK(one.sum_over == std::vector{5});
  }
  for (const std::size_t radix : {0u, 1u})
    CHECK_THROWS_WITH_AS((recursive_doubling{.radix = radix}.stages(0, 4, {1000, 4, 1, true})),
                         doctest::Contains(("radix " + std::to_string(radix)).c_str()), adasum::bad_input);
}

}  // namespace test_of_schedules_recursive_doubling
