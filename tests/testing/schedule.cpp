// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// check_schedule takes schedules that are right (those of the library: tests/schedules/), and finds planted faults.
#include <doctest/doctest.h>

#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/testing.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/complete_types.hpp"
#include "support/foreign.hpp"
#include "support/refusal.hpp"

namespace test_of_testing_schedule {

using namespace adasum;
using namespace adasum::test;

namespace {

/// Rank 0 combines its vector with that of each other rank, one after the other. No pairwise rule's tree.
struct chain {
  static constexpr std::string_view name = "chain";
  static constexpr bool supports_gram_rules = false;

  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    const index_range all{0, input.length};
    std::vector<stage> stages;
    for (int next = 1; next < size; ++next) {
      if (rank != 0 && rank != next) continue;
      const auto leaf = static_cast<std::size_t>(next);
      stages.push_back({{0, next}, rank == 0 ? 0u : 1u, {0, leaf, leaf + 1}, 1, all, {all}, {0}});
    }
    return stages;
  }
};

/// A schedule whose stages are changed on their way.
template <class Schedule>
struct altered : Schedule {
  std::function<void(std::vector<stage>&, int rank)> change;

  altered(Schedule order, std::function<void(std::vector<stage>&, int)> how)
      : Schedule(std::move(order)), change(std::move(how)) {}
  std::vector<stage> stages(int rank, int size, const schedule_input& input) const {
    auto found = Schedule::stages(rank, size, input);
    change(found, rank);
    return found;
  }
  friend bool operator==(const altered&, const altered&) { return true; }
};

/// Promises one stage for any rule.
struct promises : schedules::recursive_doubling {
  static constexpr bool supports_gram_rules = true;
};

/// Names one rank for all gradients.
struct twice : reversed_schedule {
  static std::vector<int> leaf_ranks(int size, const schedule_input&) {
    return std::vector<int>(static_cast<std::size_t>(size), 0);
  }
};

/// For 4 ranks and 1000 elements.
template <class Schedule, class Change>
void check_found(const Schedule& order, const Change& change, const std::string& mentions) {
  const schedule_input input{.length = 1000, .element_size = 4};
  check_schedule(order, 4, input);
  check_refused([&] { check_schedule(altered<Schedule>(order, change), 4, input); }, mentions);
}

}  // namespace

TEST_CASE("schedules of users that are right") {
  const question_counts asked;
  CHECK_NOTHROW(check_schedule(minimal_schedule(1)));
  CHECK_NOTHROW(check_schedule(complete_schedule(asked)));
  CHECK(asked.of(asked_for::stages_in_place) > 0);
  using names = std::vector<std::string>;
  CHECK(check_schedule(minimal_schedule(1), 2) == names{});
  CHECK(check_schedule(complete_schedule(asked), 2) == names{"uses_shared_memory", "parameters"});
  CHECK(check_schedule(reversed_schedule{}, 2) == names{"leaf_ranks"});
  CHECK_NOTHROW(check_schedule(reversed_schedule{}));
  CHECK_NOTHROW(check_schedule(binomial_tree{}, {1, 2, 4, 8, 16}));
  for (const int servers : {1, 2, 3}) CHECK_NOTHROW(check_schedule(parameter_servers{servers}));
}

TEST_CASE("a chain has another tree") {
  CHECK_NOTHROW(check_schedule(chain{}, {1, 2, 3}));  // up to three ranks it is the same
  check_refused([] { check_schedule(chain{}); }, "(((0 1) 2) 3) instead of ((0 1) (2 3))");
}

TEST_CASE("faults in what the ranks make of a stage") {
  using schedules::recursive_doubling, schedules::recursive_halving, schedules::all_to_all;
  const auto on_rank = [](int which, auto change) {
    return [=](std::vector<stage>& stages, int rank) {
      if (rank == which) change(stages);
    };
  };
  check_found(recursive_doubling{}, on_rank(2, [](auto& stages) { stages.clear(); }), "rank 2 has no stage");
  check_found(recursive_doubling{}, on_rank(3, [](auto& stages) { stages.pop_back(); }), "waits for ever");
  check_found(recursive_doubling{}, on_rank(1, [](auto& stages) { stages[0].held.end = 999; }),
              "neither a partition nor everything");
  check_found(recursive_doubling{}, on_rank(1, [](auto& stages) { stages[1].members[0] = 4; }), "that does not exist");
  check_found(recursive_doubling{}, on_rank(1, [](auto& stages) { stages[1].self = 1 - stages[1].self; }),
              "not members[self]");
  check_found(recursive_doubling{}, on_rank(0, [](auto& stages) { stages[0].leaf_offsets[1] = 0; }),
              "brings the wrong gradients");
  check_found(recursive_doubling{},
              on_rank(0, [](auto& stages) { stages[0].survivors = 1, stages[0].parts.pop_back(); }), "disagree");
  check_found(all_to_all{},
              on_rank(1, [](auto& stages) { stages[0].parts[0].end += 1, stages[0].parts[1].begin += 1; }),
              "counts them twice");
  check_found(all_to_all{}, on_rank(1, [](auto& stages) { stages[0].parts.pop_back(); }), "one part for each survivor");
  check_found(all_to_all{}, on_rank(1, [](auto& stages) { stages[0].published = true; }), "published");
}

TEST_CASE("faults that all ranks share") {
  using schedules::recursive_halving;
  const auto everywhere = [](auto change) {
    return [=](std::vector<stage>& stages, int rank) {
      for (auto& stage : stages) change(stage, rank);
    };
  };
  // Each rank adds the inner products of its own part alone; or those of rank 0, too.
  check_found(recursive_halving{}, everywhere([](stage& stage, int rank) { stage.sum_over = {rank}; }),
              "misses elements or counts them twice");
  check_found(recursive_halving{}, everywhere([](stage& stage, int) {
                if (std::ranges::find(stage.sum_over, 0) == stage.sum_over.end()) stage.sum_over.push_back(0);
              }),
              "sum");
  check_found(schedules::all_to_all{}, everywhere([](stage& stage, int rank) { stage.sum_over.push_back(rank); }),
              "not in its own sum_over exactly once");
  check_found(recursive_halving{}, everywhere([](stage& stage, int) { stage.inner = true; }), "marks stages as inner");
  // The last stage is left out: every rank ends with a half of the gradients.
  check_found(schedules::recursive_doubling{}, [](std::vector<stage>& stages, int) { stages.pop_back(); }, "tree");
}

TEST_CASE("stages that change, and a promise that is not kept") {
  const auto calls = std::make_shared<int>(0);
  check_refused(
      [&] {
        check_schedule(altered<schedules::all_to_all>({},
                                                      [=](std::vector<stage>& stages, int) {
                                                        if (++*calls % 2 == 0) stages[0].inner = true;
                                                      }),
                       4);
      },
      "when it is asked again");

  check_refused([] { check_schedule(promises{}, 4); }, "does not combine all gradients in one stage");

  check_refused([] { check_schedule(twice{}, 2); }, "leaf_ranks");
}

}  // namespace test_of_testing_schedule
