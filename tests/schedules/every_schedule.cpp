// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/testing/schedule.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "support/schedule_simulation.hpp"
#include "support/schedules.hpp"
#include "support/sizes.hpp"

namespace test_of_schedules_every_schedule {

/// All schedules, as plain data: no communicator takes part in these tests.

using adasum::schedule_input;
using adasum::test::defining_tree;
using adasum::test::schedule_simulation;

namespace {

std::vector<int> rank_counts() {
  std::vector<int> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {64, 100});
  return adasum::test::few_or_all({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 17, 22, 33, 64}, counts);
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
  using namespace adasum::schedules;
  const auto check = [](const auto& order) { CHECK_NOTHROW(adasum::check_schedule(order)); };
  check(recursive_doubling{});
  for (const auto& order : {recursive_halving{}, recursive_halving{.radix = 4}, recursive_halving{.radix = 8},
                            recursive_halving{.most_parts = 2}})
    check(order);
  check(all_to_all{});
  check(automatic{});
  check(automatic{.in_place = false});
  check(shared_memory{});
  check(shared_memory{.radix = 2});  // levels among few ranks
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
      // In a stage of k members a rank that holds h elements, of which it keeps p, sends h - p and later (k - 1)·p.
      // Both h and p are within 1 of N/span, so a stage is within 1 + (k - 2) of its share; if P divides N, exact.
      const auto bandwidth_optimal = [&](double sent, const std::vector<adasum::stage>& stages) {
        double rounding = 0;
        if (length % static_cast<std::size_t>(size) != 0)
          for (const auto& one : stages) rounding += static_cast<double>(one.members.size() - 1);
        CHECK(std::abs(sent - 2 * (ranks - 1) / ranks * whole) <= rounding);
      };
      count_of(adasum::schedules::recursive_halving{}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::recursive_halving{.radix = 4}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::recursive_halving{.radix = 8}, size, length, bandwidth_optimal);
      count_of(adasum::schedules::all_to_all{}, size, length, bandwidth_optimal);
    }
}

}  // namespace test_of_schedules_every_schedule
