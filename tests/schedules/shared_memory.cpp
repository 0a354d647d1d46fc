// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>
#include <adasum/testing/schedule.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test_of_schedules_shared_memory {

using adasum::schedule_input;
using adasum::schedules::all_to_all;
using adasum::schedules::shared_memory;

namespace {

schedule_input floats(std::size_t length) { return {length, 4, 1, true}; }

}  // namespace

TEST_CASE("shared_memory: long gradients are cut into slices, as in all_to_all") {
  const auto input = floats(3000);
  const auto found = shared_memory{}.stages(2, 4, input), expected = all_to_all{}.stages(2, 4, input);
  REQUIRE(found.size() == 1);
  CHECK(found.front().parts == expected.front().parts);
  CHECK(found.front().sum_over == expected.front().sum_over);
  CHECK_FALSE(found.front().published);
}

TEST_CASE("shared_memory: short gradients are published, and each rank combines them whole without a sum") {
  const auto found = shared_memory{}.stages(2, 4, floats(10));
  REQUIRE(found.size() == 1);
  const auto& one = found.front();
  CHECK(one.published);
  CHECK(one.replicated());
  CHECK(one.part() == adasum::index_range{0, 10});
  CHECK(one.sum_over == std::vector{2});
}

TEST_CASE("shared_memory: short is what all ranks' gradients have together; never on a device") {
  CHECK(shared_memory::is_short(4, floats(512)));  // 4 · 512 · 4 bytes = 8 KiB
  CHECK_FALSE(shared_memory::is_short(4, floats(513)));
  CHECK_FALSE(shared_memory::is_short(5, floats(512)));
  CHECK_FALSE(shared_memory::is_short(2, {1, 4, 1, true, true}));
  // Pieces of a gradient, and shards, go the same way whatever their own lengths.
  auto piece = floats(10);
  piece.whole_length = 512;
  CHECK(shared_memory::is_short(4, piece));
  piece.whole_length = 513;
  CHECK_FALSE(shared_memory::is_short(4, piece));
}

TEST_CASE("shared_memory: more ranks than the radix go by levels, as recursive_halving of that radix does") {
  using adasum::schedules::recursive_halving;
  for (const int size : {9, 16, 24, 48, 64, 96, 100})
    for (const std::size_t radix : {2u, 4u, 8u})
      for (int rank = 0; rank < size; rank += 5) {
        CAPTURE(size);
        CAPTURE(radix);
        const auto input = floats(5000);
        const auto found = shared_memory{radix}.stages(rank, size, input),
                   expected = recursive_halving{radix}.stages(rank, size, input);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].members == expected[i].members);
          CHECK(found[i].parts == expected[i].parts);
          CHECK(found[i].sum_over == expected[i].sum_over);
          CHECK(found[i].grouped);
        }
      }
  CHECK(shared_memory{}.stages(0, 64, floats(5000)).size() == 2);
  CHECK_FALSE(shared_memory{}.stages(0, 8, floats(5000)).front().grouped);
}

TEST_CASE("shared_memory: nobody is folded, and rules of all gradients take one stage") {
  for (const int size : {11, 17, 22, 97, 143})
    for (const std::size_t radix : {2u, 8u})
      for (int rank = 0; rank < size; ++rank)
        for (const auto& one : shared_memory{radix}.stages(rank, size, floats(5000)))
          CHECK(one.survivors == one.members.size());
  CHECK(shared_memory{}.stages(3, 22, floats(5000)).size() == 2);  // 2 · 11
  auto of_all = floats(5000);
  of_all.along_tree = false;
  CHECK(shared_memory{}.stages(3, 64, of_all).size() == 1);
  CHECK_NOTHROW(adasum::check_schedule(shared_memory{}, {9, 22, 48, 97}));
  CHECK_NOTHROW(adasum::check_schedule(shared_memory{.radix = 2}, {2, 3, 4, 6, 8, 11, 48}));
}

TEST_CASE("shared_memory: radices are told apart, and one below 2 is refused") {
  CHECK_FALSE(shared_memory{} == shared_memory{4});
  CHECK(shared_memory{}.parameters() != shared_memory{4}.parameters());
  CHECK_THROWS_WITH_AS(shared_memory{1}.stages(0, 4, floats(5000)), doctest::Contains("the radix 1 is less than 2"),
                       adasum::bad_input);
}

}  // namespace test_of_schedules_shared_memory
