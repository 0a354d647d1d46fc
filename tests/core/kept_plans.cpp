// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>

#include <adasum/core/kept_plans.hpp>

namespace test_of_core_kept_plans {

namespace {

struct numbered : adasum::kept_plans::call {
  numbered(int n, int& alive) : call(this), number(n), counted(alive) { ++counted; }
  ~numbered() override { --counted; }
  int number;
  int& counted;
};
struct another : adasum::kept_plans::call {
  another() : call(this) {}
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

}  // namespace test_of_core_kept_plans
