// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/schedules/hierarchical.hpp>
#include <adasum/schedules/partition.hpp>
#include <adasum/schedules/parts_of_result.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/schedules.hpp"

namespace test_of_schedules_parts_of_result {

using adasum::index_range;
using adasum::stage;
using adasum::detail::exchange_of_parts;
using adasum::detail::part_of;
using adasum::detail::rank_at_end;
using adasum::detail::ranks_at_end;

namespace {

/// Parts of `length` elements: even, growing, all to one rank, every second one empty.
std::vector<std::vector<index_range>> ways_to_deal_out(std::size_t length, std::size_t ranks) {
  std::vector<std::vector<index_range>> ways(4);
  const index_range all{0, length};
  std::size_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    ways[0].push_back(part_of(all, ranks, r));
    const auto end = r + 1 == ranks ? length : length * (r + 1) * (r + 1) / (ranks * ranks);
    ways[1].push_back({std::exchange(at, end), end});
    ways[2].push_back(r == ranks / 2 ? all : index_range{});
    const auto pair = part_of(all, (ranks + 1) / 2, r / 2);
    ways[3].push_back(r % 2 == 0 ? pair : index_range{pair.end, pair.end});
  }
  return ways;
}

/// Plays the exchange: every rank then has its part, was told, and no element was sent that need not be.
/// @return elements that were sent
std::size_t check_exchange(const std::vector<rank_at_end>& at_end, const std::vector<index_range>& wanted,
                           const std::vector<int>& nodes = {}) {
  const auto ranks = at_end.size();
  const exchange_of_parts exchange(at_end, wanted, nodes);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::tuple<std::size_t, std::size_t, bool>>> sent, received;
  std::vector<std::vector<int>> has(ranks);  // how often a rank has what it wants
  std::vector<bool> knows(ranks);
  std::size_t elements = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    has[r].resize(wanted[r].end);
    knows[r] = at_end[r].has_result;
    if (knows[r])
      for (auto x = at_end[r].elements.begin; x < at_end[r].elements.end; ++x)
        if (x < has[r].size()) ++has[r][x];
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto list = exchange.of(static_cast<int>(r), ranks);
    for (const auto& one : list.sends) {
      CHECK(one.member != r);
      CHECK(at_end[r].has_result);
      CHECK(at_end[r].elements.begin <= (one.elements.empty() ? at_end[r].elements.begin : one.elements.begin));
      CHECK((one.elements.empty() || one.elements.end <= at_end[r].elements.end));
      sent[{r, one.member}].emplace_back(one.elements.begin, one.elements.end, one.result_norms);
      elements += one.elements.size();
    }
    for (const auto& one : list.receives) {
      received[{one.member, r}].emplace_back(one.elements.begin, one.elements.end, one.result_norms);
      for (auto x = one.elements.begin; x < one.elements.end; ++x) ++has[r][x];
      if (!one.result_norms) continue;
      CHECK(!knows[r]);
      CHECK(one.leaves == index_range{0, ranks});
      knows[r] = true;
    }
  }
  CHECK(sent == received);
  for (std::size_t r = 0; r < ranks; ++r) {
    CHECK(knows[r]);
    for (auto x = wanted[r].begin; x < wanted[r].end; ++x) CHECK(has[r][x] == 1);
  }
  return elements;
}

template <class Schedule>
std::vector<rank_at_end> at_end_of(const Schedule& order, int size, const adasum::schedule_input& input, int asks = 0) {
  const auto stages_of = [&](int rank) { return order.stages(rank, size, input); };
  return ranks_at_end(stages_of(asks), size, stages_of);
}

}  // namespace

TEST_CASE("every rank gets its part, by every schedule") {
  for (const int size : {1, 2, 3, 4, 5, 6, 8, 11, 12, 13, 22, 24})
    for (const std::size_t length : {0u, 1u, 7u, 240u, 1001u})
      for (const auto& wanted : ways_to_deal_out(length, static_cast<std::size_t>(size))) {
        CAPTURE(size);
        CAPTURE(length);
        adasum::test::for_each_schedule([&](const auto& order, const std::string& name) {
          CAPTURE(name);
          const auto sent = check_exchange(at_end_of(order, size, {length, 4, 1, true}), wanted);
          CHECK(sent <= length);  // each element once, at most
        });
      }
}

TEST_CASE("nothing is sent where each rank has computed its part: all_to_all and even parts, doubling and any") {
  for (const int size : {2, 3, 8, 12}) {
    const adasum::schedule_input input{1001, 4, 1, true};
    const auto ways = ways_to_deal_out(1001, static_cast<std::size_t>(size));
    CHECK(check_exchange(at_end_of(adasum::schedules::all_to_all{}, size, input), ways[0]) == 0);
    for (const auto& wanted : ways)
      CHECK(check_exchange(at_end_of(adasum::schedules::recursive_doubling{}, size, input), wanted) == 0);
  }
}

TEST_CASE("all ranks have the same idea of who has what") {
  for (const int size : {4, 11, 12})
    for (int rank = 0; rank < size; ++rank) {
      const adasum::schedules::recursive_halving order;
      const auto one = at_end_of(order, size, {100, 4, 1, true}),
                 other = at_end_of(order, size, {100, 4, 1, true}, rank);
      for (std::size_t r = 0; r < one.size(); ++r) {
        CHECK(one[r].has_result == other[r].has_result);
        CHECK(one[r].elements == other[r].elements);
      }
    }
}

TEST_CASE("from several ranks that have computed the same, a part comes from one on the same node") {
  const std::vector<int> nodes{0, 0, 0, 1, 1, 1, 1};  // the last rank of node 1 has no shard
  const adasum::schedules::hierarchical order{nodes, adasum::rules::mean{}, adasum::schedules::recursive_doubling{}};
  adasum::schedule_input input{700, 4, 1, true};
  const auto at_end = at_end_of(order, 7, input);
  CHECK(!at_end[6].has_result);
  for (const auto& wanted : ways_to_deal_out(700, 7)) {
    check_exchange(at_end, wanted, nodes);
    for (int rank = 0; rank < 7; ++rank)
      for (const auto& one : exchange_of_parts(at_end, wanted, nodes).of(rank, 7).receives)
        CHECK(nodes[one.member] == nodes[static_cast<std::size_t>(rank)]);
  }
}

TEST_CASE("elements that nobody has, and ranks whom nobody tells, are an error") {
  const std::vector<rank_at_end> lacking{{true, {0, 3}, 0}, {true, {4, 6}, 0}};
  const std::vector<index_range> wanted{{0, 0}, {0, 6}};
  CHECK_THROWS_WITH_AS(exchange_of_parts(lacking, wanted, {}).of(0, 2), doctest::Contains("no rank has element 3"),
                       adasum::bad_input);
  const std::vector<rank_at_end> circular{{false, {}, 1}, {false, {}, 0}};
  const std::vector<index_range> none(2);
  CHECK_THROWS_WITH_AS(exchange_of_parts(circular, none, {}).of(0, 2), doctest::Contains("no rank sends rank"),
                       adasum::bad_input);
}

}  // namespace test_of_schedules_parts_of_result
