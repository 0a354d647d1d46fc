// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/schedule/all_to_all.hpp>
#include <adasum/schedule/shared_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace test_of_schedule_shared_memory {

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
}

}  // namespace test_of_schedule_shared_memory
