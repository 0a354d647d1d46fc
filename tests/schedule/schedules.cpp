// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <adasum/core/error.hpp>
#include <adasum/testing/schedule.hpp>

#include "support/schedule_simulation.hpp"
#include "support/schedules.hpp"

/// Schedules as plain data: no communicator takes part in these tests.

using adasum::schedule_input;
using adasum::test::defining_tree;
using adasum::test::schedule_simulation;

namespace {

std::vector<int> rank_counts() {
  std::vector<int> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {64, 100});
  return counts;
}

constexpr std::size_t lengths[] = {0, 1, 2, 7, 1000};

}  // namespace

TEST_CASE("the simulation knows the tree of the definition") {
  CHECK(defining_tree(1) == "0");
  CHECK(defining_tree(4) == "((0 1) (2 3))");
  CHECK(defining_tree(5) == "(((0 1) 2) (3 4))");
  CHECK(defining_tree(7) == "(((0 1) (2 3)) ((4 5) 6))");
}

TEST_CASE("stages of all ranks fit together and imply the tree of the definition") {
  adasum::test::for_each_schedule([](const auto& order, const std::string& name) {
    for (const int size : rank_counts())
      for (const auto length : lengths) {
        CAPTURE(name);
        CAPTURE(size);
        CAPTURE(length);
        schedule_simulation simulation(order, size, schedule_input{length, 4, 1, true});
        CHECK_NOTHROW(simulation.require_sums());
        CHECK_NOTHROW(simulation.combine());
        CHECK_NOTHROW(simulation.require_root());
        CHECK_NOTHROW(simulation.gather());
      }
  });
}

TEST_CASE("the public checker takes every schedule") {
  adasum::test::for_each_schedule([](const auto& order, const std::string& name) {
    CAPTURE(name);
    CHECK_NOTHROW(adasum::check_schedule(order));
  });
}

TEST_CASE("elements sent by a rank, powers of two") {
  const auto count_of = [](const auto& order, int size, std::size_t length, auto&& expect) {
    const schedule_simulation simulation(order, size, schedule_input{length, 4, 1, true});
    for (std::size_t rank = 0; rank < simulation.size(); ++rank)
      expect(static_cast<double>(simulation.elements_sent(rank)), simulation.stages(rank));
  };
  for (const int size : {1, 2, 4, 8, 16, 32, 64})
    for (const std::size_t length : {0u, 1u, 7u, 1000u, 6400u}) {
      CAPTURE(size);
      CAPTURE(length);
      const double ranks = size, whole = static_cast<double>(length);
      count_of(adasum::schedules::recursive_doubling{}, size, length,
               [&](double sent, const auto&) { CHECK(sent == std::countr_zero(static_cast<unsigned>(size)) * whole); });
      // At a level of k members a rank that holds h elements, of which it keeps p, sends h - p and later (k - 1)·p.
      // Both h and p are within 1 of N/span, so a level is within 1 + (k - 2) of its share; if P divides N, exact.
      const auto bandwidth_optimal = [&](double sent, const std::vector<adasum::stage>& stages) {
        double rounding = 0;
        if (length % static_cast<std::size_t>(size) != 0)
          for (const auto& level : stages) rounding += static_cast<double>(level.members.size() - 1);
        CHECK(std::abs(sent - 2 * (ranks - 1) / ranks * whole) <= rounding);
      };
      count_of(adasum::schedules::recursive_halving{}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::recursive_halving{.radix = 4}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::recursive_halving{.radix = 8}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::all_to_all{}, size, length, bandwidth_optimal);
    }
}

TEST_CASE("numbers of levels") {
  const auto levels = [](const auto& order, int rank, int size) {
    return order.stages(rank, size, schedule_input{1000, 4, 1, true}).size();
  };
  CHECK(levels(adasum::schedules::recursive_doubling{}, 3, 16) == 4);
  CHECK(levels(adasum::schedules::recursive_halving{}, 3, 16) == 4);
  CHECK(levels(adasum::schedules::recursive_halving{.radix = 4}, 3, 16) == 2);
  CHECK(levels(adasum::schedules::recursive_halving{.radix = 4}, 3, 32) == 3);  // 4 · 4 · 2
  CHECK(levels(adasum::schedules::recursive_halving{.radix = 8}, 3, 4) == 1);
  CHECK(levels(adasum::schedules::all_to_all{}, 3, 100) == 1);
  CHECK(levels(adasum::schedules::recursive_halving{}, 0, 17) == 5);   // keeps a folded pair
  CHECK(levels(adasum::schedules::recursive_halving{}, 1, 17) == 1);   // is folded away
  CHECK(levels(adasum::schedules::recursive_halving{}, 16, 17) == 4);  // is a node by itself
}

TEST_CASE("of two halves the first has floor(size / 2) elements") {
  using adasum::index_range;
  CHECK(adasum::detail::part_of({10, 17}, 2, 0) == index_range{10, 13});
  CHECK(adasum::detail::part_of({10, 17}, 2, 1) == index_range{13, 17});
  // No overflow where size · count would not fit.
  const index_range huge{0, ~std::size_t{0}};
  CHECK(adasum::detail::part_of(huge, 64, 0).begin == 0);
  CHECK(adasum::detail::part_of(huge, 64, 63).end == huge.end);
}

TEST_CASE("the radix of halving is a power of two") {
  for (const std::size_t radix : {0u, 1u, 3u, 6u, 12u}) {
    CAPTURE(radix);
    const auto build = [&] {
      return adasum::schedules::recursive_halving{.radix = radix}.stages(0, 4, schedule_input{8, 4, 1, true});
    };
    CHECK_THROWS_WITH_AS(build(), doctest::Contains(("radix " + std::to_string(radix)).c_str()), adasum::bad_input);
  }
}

TEST_CASE("automatic runs what it says") {
  using namespace adasum::schedules;
  const auto same = [](const auto& order, int size, const schedule_input& what) {
    CHECK(automatic::chosen_name(size, what) == order.name);
    for (int rank = 0; rank < size; ++rank) {
      const auto chosen = automatic{}.stages(rank, size, what), expected = order.stages(rank, size, what);
      REQUIRE(chosen.size() == expected.size());
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        CHECK(chosen[i].members == expected[i].members);
        CHECK(chosen[i].parts == expected[i].parts);
      }
    }
  };
  const schedule_input few{10, 4, 1, true}, many{1'000'000, 4, 1, true}, not_pairwise{10, 4, 1, false};
  same(recursive_doubling{}, 4, few);
  same(recursive_halving{}, 2, many);
  same(recursive_halving{.radix = 4}, 4, many);
  same(all_to_all{}, 4, not_pairwise);
  same(all_to_all{}, 7, many);
  const schedule_input middle{16'000, 4, 1, true};
  same(recursive_halving{.radix = automatic::choose(64, middle).radix}, 64, middle);
}
