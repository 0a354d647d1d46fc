// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/stage.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

namespace test_of_core_stage {

using adasum::index_range;
using adasum::stage;

namespace {

stage halving() {
  return {.members = {4, 6},
          .self = 1,
          .leaf_offsets = {4, 6, 9},
          .survivors = 2,
          .held = {10, 20},
          .parts = {{10, 15}, {15, 20}},
          .sum_over = {4, 6}};
}

}  // namespace

TEST_CASE("a survivor has a part; the gradients of a member's vector are counted") {
  const auto one = halving();
  CHECK(one.survives());
  CHECK(one.part() == index_range{15, 20});
  CHECK(one.leaf_count(0) == 2);
  CHECK(one.leaf_count(1) == 3);
  auto folding = halving();
  folding.survivors = 1;
  folding.parts = {folding.held};
  CHECK_FALSE(folding.survives());
}

TEST_CASE("replicated: every survivor has all of what is held") {
  auto one = halving();
  CHECK_FALSE(one.replicated());
  one.parts = {one.held, one.held};
  CHECK(one.replicated());
  // A single survivor has everything, even of nothing.
  one.survivors = 1;
  one.held = {10, 10};
  one.parts = {one.held};
  CHECK(one.replicated());
  // Of no elements, two equal parts are a partition as well: as such they are summed over both ranks.
  one.survivors = 2;
  one.parts = {one.held, one.held};
  CHECK_FALSE(one.replicated());
}

TEST_CASE("stages are alike if they differ in their elements alone") {
  const std::vector<stage> one{halving(), halving()};
  auto other = one;
  other[1].held = {0, 4};
  other[1].parts = {{0, 2}, {2, 4}};
  CHECK(adasum::meet_alike(one, other));
  CHECK_FALSE(adasum::meet_alike(one, std::span(other).first(1)));
  const auto differs = [&](auto change) {
    other = one;
    change(other[1]);
    return !adasum::meet_alike(one, other);
  };
  CHECK(differs([](stage& changed) { changed.members[0] = 5; }));
  CHECK(differs([](stage& changed) { changed.self = 0; }));
  CHECK(differs([](stage& changed) { changed.leaf_offsets[1] = 7; }));
  CHECK(differs([](stage& changed) { changed.survivors = 1; }));
  CHECK(differs([](stage& changed) { changed.sum_over = {4, 6, 8}; }));
  CHECK(differs([](stage& changed) { changed.inner = true; }));
}

}  // namespace test_of_core_stage
