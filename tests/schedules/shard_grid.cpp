// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shard_grid.hpp>

#include "support/refusal.hpp"

namespace test_of_schedules_shard_grid {

using adasum::detail::shard_grid;
using adasum::detail::shard_place;
using adasum::test::check_refused;

namespace {

shard_grid grid_of(const std::vector<shard_place>& places) { return shard_grid(places, "call"); }

}  // namespace

TEST_CASE("who has which shard") {
  const auto grid = grid_of({{1, 0}, {0, 1}, {2, 1}, {0, 0}, {2, 0}, {1, 1}});
  CHECK(grid.replicas() == 3);
  CHECK(grid.shards() == 2);
  CHECK(grid.rank_at({2, 1}) == 2);
  CHECK(std::vector(grid.ranks_of(1).begin(), grid.ranks_of(1).end()) == std::vector{0, 5});
  CHECK(shard_grid().empty());
}

TEST_CASE("one replica alone, and one shard alone") {
  const auto alone = grid_of({{0, 1}, {0, 0}});
  CHECK(alone.replicas() == 1);
  CHECK(alone.shards() == 2);
  CHECK(alone.rank_at({0, 1}) == 0);
  const auto whole = grid_of({{1, 0}, {0, 0}});
  CHECK(whole.replicas() == 2);
  CHECK(whole.shards() == 1);
}

TEST_CASE("places that do not fit together") {
  check_refused([] { grid_of({{0, 0}, {0, 0}}); },
                "call: rank 0 and rank 1 both say that they have shard 0 of replica 0");
  check_refused([] { grid_of({{0, 0}, {1, 1}, {1, 1}, {0, 1}}); },
                "rank 1 and rank 2 both say that they have shard 1 of");
  check_refused([] { grid_of({{0, -1}}); }, "rank 0 says that it has shard -1 of replica 0");
  check_refused([] { grid_of({{0, 0}, {-1, 0}}); }, "rank 1 says that it has shard 0 of replica -1");
}

TEST_CASE("a shard that nobody has: it is named, and the ranks with the highest numbers") {
  const auto check = [&](int replicas, int shards, int culprit, int shard_place::* axis, int high) {
    std::vector<shard_place> places;
    for (int rank = 0; rank < replicas * shards; ++rank) places.push_back({rank / shards, rank % shards});
    places[static_cast<std::size_t>(culprit)].*axis = high;
    check_refused([&] { grid_of(places); }, "call: nobody has shard ",
                  std::to_string(high) + " (rank " + std::to_string(culprit) + ")", "both numbered from 0, on ");
  };
  for (const auto& [replicas, shards] : {std::pair{2, 2}, {3, 2}, {2, 3}, {3, 1}, {1, 3}, {4, 1}, {1, 1}})
    for (int culprit = 0; culprit < replicas * shards; ++culprit)
      for (const int beyond : {0, 1, 1000000}) {
        check(replicas, shards, culprit, &shard_place::replica, replicas + beyond);
        check(replicas, shards, culprit, &shard_place::index, shards + beyond);
      }
  check_refused(
      [] { grid_of({{0, 0}, {0, 1}, {1, 0}}); },
      "call: nobody has shard 1 of replica 1; the highest numbers are replica 1 (rank 2) and shard 1 (rank 1), "
      "so there would be 2 replicas of 2 shards, both numbered from 0, on 3 ranks");
  check_refused([] { grid_of({{1, 1}, {1, 2}, {2, 1}, {2, 2}}); }, "nobody has shard 0 of replica 0",
                "replica 2 (rank 3) and shard 2 (rank 1)", "3 replicas of 3 shards");
  check_refused([] { grid_of({{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}}); }, "nobody has shard 2 of replica 1",
                "2 replicas of 3 shards, both numbered from 0, on 5 ranks");
  check_refused([] { grid_of({{0, 0}, {2147483647, 2147483647}, {0, 1}, {2147483646, 0}}); },
                "replica 2147483647 (rank 1) and shard 2147483647 (rank 1)",
                "2147483648 replicas of 2147483648 shards");
}

TEST_CASE("a stage of replicas, for the rank with one of their shards") {
  // Replicas 0 to 3, of two shards each: rank 2·replica + index.
  const auto grid = grid_of({{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}, {3, 1}});
  const auto stages = adasum::schedules::recursive_halving{}.stages(2, 4, {.length = 8, .element_size = 4});
  const auto first = grid.widen(stages[0], 1);
  CHECK(first.members == std::vector{5, 7});
  CHECK(first.sum_over == std::vector{4, 5, 6, 7});
  CHECK(first.parts == stages[0].parts);
  const auto second = grid.widen(stages[1], 1);
  CHECK(second.members == std::vector{1, 5});
  CHECK(second.sum_over == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("stages are alike whatever the length, or they are not") {
  const auto stages = [](std::size_t length, std::size_t radix) {
    return adasum::schedules::recursive_halving{radix}.stages(0, 4, {.length = length, .element_size = 4});
  };
  CHECK(adasum::meet_alike(stages(8, 2), stages(0, 2)));
  CHECK_FALSE(adasum::meet_alike(stages(8, 2), stages(8, 4)));
}

}  // namespace test_of_schedules_shard_grid
