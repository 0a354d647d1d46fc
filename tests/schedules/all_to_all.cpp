// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedules/all_to_all.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test_of_schedules_all_to_all {

using adasum::index_range;
using adasum::schedules::all_to_all;

TEST_CASE("all_to_all: one stage of all ranks, a slice for each, sums over all") {
  for (const int size : {1, 2, 3, 100})
    for (int rank = 0; rank < size; ++rank) {
      const auto stages = all_to_all{}.stages(rank, size, {1000, 4, 1, false});
      REQUIRE(stages.size() == 1);
      const auto& one = stages.front();
      CHECK(one.self == static_cast<std::size_t>(rank));
      CHECK(one.members.size() == static_cast<std::size_t>(size));
      CHECK(one.survivors == one.members.size());
      CHECK(one.sum_over == one.members);
      CHECK_FALSE(one.published);
    }
  CHECK(all_to_all{}.stages(1, 3, {10, 4, 1, false}).front().part() == index_range{3, 6});
}

}  // namespace test_of_schedules_all_to_all
