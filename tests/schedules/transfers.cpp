// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/hierarchical.hpp>
#include <adasum/schedules/transfers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/foreign.hpp"
#include "support/schedule_simulation.hpp"
#include "support/schedules.hpp"

namespace test_of_schedules_transfers {

using adasum::index_range;
using adasum::stage;
using adasum::detail::transfer;
using adasum::detail::transfers;
using adasum::detail::transfers_to_combine;
using adasum::detail::transfers_to_deliver;
using adasum::test::defining_tree;

namespace {

/// A rank in the middle of a reduction that is played with the transfers alone. Its vector holds in each element the
/// tree of what has been combined there, as in "(0 1)".
struct rank_state {
  std::vector<stage> stages;
  std::vector<std::string> vector;
  std::size_t done = 0;              // stages that lie behind it
  std::set<std::size_t> known = {};  // gradients whose records it has
  bool knows_norms = false;
  std::size_t sent = 0;  // elements
};

class played_reduction {
 public:
  template <class Schedule>
  played_reduction(const Schedule& order, int size, std::size_t length) {
    for (int r = 0; r < size; ++r)
      ranks_.push_back({order.stages(r, size, {length, 4, 1, true}), std::vector(length, std::to_string(r))});
  }

  void combine() {
    walk([](const rank_state& rank) { return rank.done < rank.stages.size() ? &rank.stages[rank.done] : nullptr; },
         [this](const std::vector<stage>& met) { combine(met); });
  }
  void deliver() {
    walk([](const rank_state& rank) { return rank.done > 0 ? &rank.stages[rank.done - 1] : nullptr; },
         [this](const std::vector<stage>& met) { deliver(met); });
  }
  const std::vector<rank_state>& ranks() const { return ranks_; }

 private:
  rank_state& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  /// run(the stage as each of its members sees it) for every stage whose members have all come to it.
  template <class Current, class Run>
  void walk(Current current, Run run) {
    for (bool moved = true; std::exchange(moved, false);)
      for (const auto& rank : ranks_) {
        const stage* const one = current(rank);
        if (one == nullptr || one->self != 0) continue;
        std::vector<stage> met;
        for (const int member : one->members)
          if (const stage* const theirs = current(at(member)); theirs && theirs->members == one->members)
            met.push_back(*theirs);
        if (met.size() != one->members.size()) continue;
        run(met);
        moved = true;
      }
  }

  /// take(from, to, transfer) for each message, which one member sends and the other receives.
  template <class List, class Take>
  void exchange(const std::vector<stage>& met, List list, Take take) {
    std::map<std::pair<std::size_t, std::size_t>, transfer> expected;  // by (from, to)
    for (std::size_t i = 0; i < met.size(); ++i)
      for (const auto& one : list(met[i]).receives) CHECK(expected.emplace(std::pair(one.member, i), one).second);
    for (std::size_t i = 0; i < met.size(); ++i)
      for (const auto& one : list(met[i]).sends) {
        const auto there = expected.extract(std::pair(i, one.member));
        REQUIRE(there);
        CHECK(there.mapped().elements == one.elements);
        CHECK(there.mapped().leaves == one.leaves);
        CHECK(there.mapped().result_norms == one.result_norms);
        CHECK(there.mapped().joined == one.joined);
        auto& from = at(met[0].members[i]);
        auto& to = at(met[0].members[one.member]);
        from.sent += one.elements.size();
        for (auto leaf = one.leaves.begin; leaf < one.leaves.end; ++leaf) {
          CHECK(from.known.contains(leaf));
          to.known.insert(leaf);
        }
        if (one.result_norms) CHECK(from.knows_norms);
        to.knows_norms = to.knows_norms || one.result_norms;
        take(i, one.member, one.elements);
      }
    CHECK(expected.empty());
  }

  void combine(const std::vector<stage>& met) {
    std::vector<std::vector<std::string>> brought;  // member → its vector
    for (const int member : met[0].members) brought.push_back(at(member).vector);
    std::vector<std::vector<std::vector<std::string>>> received(  // member → from → elements; empty: not received
        met.size(), std::vector(met.size(), std::vector<std::string>(brought[0].size())));
    const auto list = [](const stage& one) { return transfers_to_combine(one, 3); };
    exchange(met, list, [&](std::size_t from, std::size_t to, index_range elements) {
      for (auto x = elements.begin; x < elements.end; ++x) received[to][from][x] = brought[from][x];
    });
    for (std::size_t i = 0; i < met.size(); ++i) {
      auto& rank = at(met[i].members[i]);
      ++rank.done;
      if (!met[i].survives()) continue;
      received[i][i] = brought[i];
      rank.vector.assign(rank.vector.size(), "not combined here");
      for (auto x = met[i].part().begin; x < met[i].part().end; ++x) {
        std::vector<std::string> trees;
        for (const auto& from : received[i]) trees.push_back(from[x]);
        rank.vector[x] = adasum::detail::combined(trees);
      }
      // Records of single gradients are made here; the others must have come with their vectors.
      for (std::size_t m = 0; m < met.size(); ++m)
        if (met[i].leaf_count(m) == 1)
          rank.known.insert(met[i].leaf_offsets[m]);
        else
          for (auto leaf = met[i].leaf_offsets[m]; leaf < met[i].leaf_offsets[m + 1]; ++leaf)
            CHECK(rank.known.contains(leaf));
      rank.knows_norms = true;
    }
  }

  void deliver(const std::vector<stage>& met) {
    const auto list = [this](const stage& one) { return transfers_to_deliver(one, ranks_.size()); };
    exchange(met, list, [&](std::size_t from, std::size_t to, index_range elements) {
      const auto& given = at(met[0].members[from]).vector;
      std::copy(given.begin() + static_cast<std::ptrdiff_t>(elements.begin),
                given.begin() + static_cast<std::ptrdiff_t>(elements.end),
                at(met[0].members[to]).vector.begin() + static_cast<std::ptrdiff_t>(elements.begin));
    });
    for (const int member : met[0].members) --at(member).done;
  }

  std::vector<rank_state> ranks_;
};

/// The first two ranks combine everything, each for itself; the others wait.
struct two_that_combine_all : adasum::test::parameter_servers {
  std::vector<stage> stages(int rank, int size, const adasum::schedule_input& input) const {
    auto all = parameter_servers::stages(rank, size, input);
    all.front().parts.assign(all.front().survivors, all.front().held);
    all.front().sum_over = {rank};
    return all;
  }
};

template <class Schedule>
void check_played(const Schedule& order, int size, std::size_t length) {
  CAPTURE(size);
  CAPTURE(length);
  CAPTURE(std::string(Schedule::name));
  played_reduction play(order, size, length);
  play.combine();
  play.deliver();
  const adasum::test::schedule_simulation simulation(order, size, {length, 4, 1, true});
  std::vector<std::string> result;
  for (std::size_t r = 0; r < play.ranks().size(); ++r) {
    const auto& rank = play.ranks()[r];
    CHECK(rank.done == 0);  // all the way down and back
    if (r == 0) result = rank.vector;
    CHECK(rank.vector == result);
    CHECK(rank.known.size() == static_cast<std::size_t>(size));
    CHECK(rank.knows_norms);
    CHECK(rank.sent == simulation.elements_sent(r));
  }
  if constexpr (!requires { order.leaf_ranks(size, adasum::schedule_input{}); })
    CHECK(result == std::vector(length, defining_tree(static_cast<std::size_t>(size))));
  else
    CHECK(std::adjacent_find(result.begin(), result.end(), std::not_equal_to<>{}) == result.end());
}

}  // namespace

TEST_CASE("played by the transfers alone, every schedule gives each rank the result and all records") {
  for (const int size : {1, 2, 3, 4, 5, 6, 8, 9})
    for (const std::size_t length : {0u, 1u, 5u, 40u}) {
      adasum::test::for_each_schedule(
          [&](const auto& order, const std::string&) { check_played(order, size, length); });
      check_played(adasum::test::parameter_servers{}, size, length);  // two parts, and members that wait
      check_played(two_that_combine_all{}, size, length);             // only the first tells those that wait
      if (size == 4 || size == 8) check_played(adasum::test::binomial_tree{}, size, length);
      // Nodes of two ranks, and the last of one where their number is odd.
      std::vector<int> nodes;
      for (int r = 0; r < size; ++r) nodes.push_back(r / 2);
      check_played(adasum::schedules::hierarchical{nodes, adasum::rules::mean{}}, size, length);
    }
}

TEST_CASE("two ranks that halve: each sends the part of the other one, and later its own") {
  const stage of_first{.members = {0, 1},
                       .self = 0,
                       .leaf_offsets = {0, 3, 4},
                       .survivors = 2,
                       .held = {0, 10},
                       .parts = {{0, 5}, {5, 10}},
                       .sum_over = {0, 1}};
  const auto down = transfers_to_combine(of_first), back = transfers_to_deliver(of_first, 4);
  REQUIRE(down.sends.size() == 1);
  CHECK(down.sends[0].elements == index_range{5, 10});
  CHECK(down.sends[0].leaves == index_range{0, 3});
  REQUIRE(down.receives.size() == 1);
  CHECK(down.receives[0].elements == index_range{0, 5});
  CHECK(down.receives[0].leaves.empty());  // of a single gradient nothing is known yet
  REQUIRE(back.sends.size() == 1);
  CHECK(back.sends[0].elements == index_range{0, 5});
  REQUIRE(back.receives.size() == 1);
  CHECK(back.receives[0].elements == index_range{5, 10});
  for (const auto& one : {back.sends[0], back.receives[0]}) {
    CHECK(one.leaves.empty());
    CHECK_FALSE(one.result_norms);
  }
}

TEST_CASE("records are joined to elements where there are both, and few elements") {
  // 3 gradients meet a single one. The first survivor gets 5 elements, the second none, the third 6.
  const stage of_first{.members = {0, 1, 2},
                       .self = 0,
                       .leaf_offsets = {0, 3, 4, 6},
                       .survivors = 3,
                       .held = {0, 11},
                       .parts = {{0, 5}, {5, 5}, {5, 11}},
                       .sum_over = {0, 1, 2}};
  const auto joined = [&](std::size_t self, std::size_t most) {
    auto one = of_first;
    one.self = self;
    const auto list = transfers_to_combine(one, most);
    std::vector<bool> found;
    for (const auto& some : {list.sends, list.receives})
      for (const auto& message : some) found.push_back(message.joined);
    return found;
  };
  using flags = std::vector<bool>;
  CHECK(joined(0, 0) == flags{false, false, false, false});
  CHECK(joined(0, 4) == flags{false, false, false, false});
  CHECK(joined(0, 5) == flags{false, false, false, true});  // from the second, nothing is known yet
  CHECK(joined(0, 6) == flags{false, true, false, true});
  CHECK(joined(1, 6) == flags{false, false, false, false});
  CHECK(joined(2, 6) == flags{true, false, true, false});
  CHECK(adasum::detail::most_joined(4, true) == 2048);
  CHECK(adasum::detail::most_joined(8, true) == 1024);
  CHECK(adasum::detail::most_joined(4, false) == 0);
}

TEST_CASE("a rank that waits sends its vector, and is told everything with the result") {
  stage folded{.members = {2, 3},
               .self = 1,
               .leaf_offsets = {2, 3, 4},
               .survivors = 1,
               .held = {0, 10},
               .parts = {{0, 10}},
               .sum_over = {2}};
  const auto down = transfers_to_combine(folded), back = transfers_to_deliver(folded, 6);
  REQUIRE(down.sends.size() == 1);
  CHECK(down.sends[0].elements == index_range{0, 10});
  CHECK(down.receives.empty());
  CHECK(back.sends.empty());
  REQUIRE(back.receives.size() == 1);
  CHECK(back.receives[0].elements == index_range{0, 10});
  CHECK(back.receives[0].leaves == index_range{0, 6});
  CHECK(back.receives[0].result_norms);
}

TEST_CASE("in place, nothing is sent: all records are made on each rank") {
  // There the elements of a stage stay where they are, and only what is known of the gradients would travel.
  for (const std::size_t length : {10u, 100'000u})  // published, and in slices
    for (int rank = 0; rank < 4; ++rank)
      for (const auto& one : adasum::schedules::shared_memory{}.stages(rank, 4, {length, 4, 1, true})) {
        CHECK(one.published == (length == 10));
        for (const auto& list : {transfers_to_combine(one), transfers_to_deliver(one, 4)})
          for (const auto& side : {list.sends, list.receives})
            for (const auto& message : side) {
              CHECK(message.leaves.empty());
              CHECK_FALSE(message.result_norms);
            }
        if (one.published) CHECK(transfers_to_deliver(one, 4).empty());  // each rank has computed all of the result
      }
}

}  // namespace test_of_schedules_transfers
