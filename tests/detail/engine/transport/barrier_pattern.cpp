// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/engine/transport/shared_memory_layout.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace test_of_detail_engine_transport_barrier_pattern {

using adasum::detail::barrier_pattern;

namespace {

/// All ranks' barriers: the ranks are `step` apart.
std::vector<barrier_pattern> barriers(std::size_t count, std::size_t radix, std::size_t step = 1) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.push_back(step * i);
  std::vector<barrier_pattern> all;
  for (std::size_t self = 0; self < count; ++self) all.emplace_back(ranks, self, radix);
  return all;
}

std::size_t rounds(std::size_t count, std::size_t radix) {
  std::size_t found = 0;
  for (std::size_t reached = 1; reached < count; reached *= radix) ++found;
  return found;
}

}  // namespace

TEST_CASE(
    "barriers: after the last round, every rank has heard from every other, once, and in the order of the parts") {
  for (const std::size_t count : {2u, 3u, 7u, 8u, 9u, 11u, 16u, 24u, 48u, 63u, 64u, 96u, 97u, 128u})
    for (const std::size_t radix : {2u, 4u, 8u}) {
      CAPTURE(count);
      CAPTURE(radix);
      const auto all = barriers(count, radix, 3);
      // What each rank knows: which ranks have come, in the order in which their numbers would be added.
      std::vector<std::vector<std::size_t>> knows;
      for (std::size_t rank = 0; rank < count; ++rank) knows.push_back({rank});
      for (std::size_t round = 0; round < rounds(count, radix); ++round) {
        const auto before = knows;
        for (std::size_t rank = 0; rank < count; ++rank) {
          const auto heard = all[rank].heard_in(round);
          CHECK(heard.size() < radix);
          auto& mine = knows[rank] = {};
          for (std::size_t i = 0; i <= heard.size(); ++i) {
            if (i == all[rank].before_own(round)) mine.insert(mine.end(), before[rank].begin(), before[rank].end());
            if (i == heard.size()) break;
            const auto& theirs = before[heard[i] / 3];
            mine.insert(mine.end(), theirs.begin(), theirs.end());
          }
        }
      }
      std::vector<std::size_t> everybody(count);
      std::iota(everybody.begin(), everybody.end(), std::size_t{0});
      for (std::size_t rank = 0; rank < count; ++rank) {
        CHECK(all[rank].rounds() == rounds(count, radix));
        CHECK(knows[rank] == everybody);
      }
    }
}

TEST_CASE("barriers of up to eight ranks take one round; 128 ranks three, of 13 flags in all") {
  for (std::size_t count = 2; count <= 8; ++count)
    for (const auto& one : barriers(count, adasum::detail::barrier_radix)) {
      CHECK(one.rounds() == 1);
      CHECK(one.heard_in(0).size() == count - 1);
    }
  for (const auto& one : barriers(128, adasum::detail::barrier_radix)) {
    REQUIRE(one.rounds() == 3);
    CHECK(one.heard_in(0).size() + one.heard_in(1).size() + one.heard_in(2).size() < 16);
  }
}

}  // namespace test_of_detail_engine_transport_barrier_pattern
