// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include <adasum/core/communicator_state.hpp>

namespace test_of_core_kept_plans {

namespace {

struct numbered : adasum::kept_plans::call {
  numbered(int n, int& alive, std::size_t bytes = 0)
      : call(std::type_identity<numbered>{}, bytes), number(n), counted(alive) {
    ++counted;
  }
  ~numbered() override { --counted; }
  int number;
  int& counted;
};
struct another : adasum::kept_plans::call {
  another() : call(std::type_identity<another>{}, 0) {}
};

auto is(int number) {
  return [=](const numbered& one) { return one.number == number; };
}

}  // namespace

TEST_CASE("a call is found by its type and its arguments") {
  int alive = 0;
  adasum::kept_plans kept;
  CHECK(kept.find<numbered>(is(1)) == nullptr);
  kept.add(std::make_unique<another>());
  kept.add(std::make_unique<numbered>(1, alive));
  kept.add(std::make_unique<numbered>(2, alive));
  REQUIRE(kept.find<numbered>(is(2)) != nullptr);
  CHECK(kept.find<numbered>(is(2))->number == 2);
  CHECK(kept.find<numbered>(is(3)) == nullptr);
  CHECK(kept.find<another>([](const another&) { return true; }) != nullptr);
}

TEST_CASE("the oldest makes room") {
  constexpr int most = adasum::kept_plans::most;
  int alive = 0;
  adasum::kept_plans kept;
  for (int i = 0; i < most + 3; ++i) kept.add(std::make_unique<numbered>(i, alive));
  CHECK(alive == most);
  CHECK(kept.find<numbered>(is(2)) == nullptr);
  CHECK(kept.find<numbered>(is(3)) != nullptr);
  CHECK(kept.find<numbered>(is(most + 2)) != nullptr);
  kept.clear();
  CHECK(alive == 0);
  CHECK(kept.find<numbered>(is(3)) == nullptr);
}

TEST_CASE("long gradients make room as well, but four of the longest may stay") {
  constexpr auto most = adasum::kept_plans::most_bytes;
  int alive = 0;
  adasum::kept_plans kept;
  for (int i = 0; i < 6; ++i) kept.add(std::make_unique<numbered>(i, alive, most / 4));
  CHECK(alive == 4);
  CHECK(kept.find<numbered>(is(1)) == nullptr);
  CHECK(kept.find<numbered>(is(2)) != nullptr);
  kept.add(std::make_unique<numbered>(6, alive, 10));
  CHECK(alive == 4);
  for (int i = 7; i < 13; ++i) kept.add(std::make_unique<numbered>(i, alive, 3 * most));
  CHECK(alive == 4);
  CHECK(kept.find<numbered>(is(9)) != nullptr);
  kept.add(std::make_unique<numbered>(13, alive, 10));
  CHECK(kept.find<numbered>(is(9)) == nullptr);
  CHECK(kept.find<numbered>(is(10)) != nullptr);
}

}  // namespace test_of_core_kept_plans
