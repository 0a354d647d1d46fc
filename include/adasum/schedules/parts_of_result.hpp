// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "transfers.hpp"

/// Where the result is not to reach all ranks, but each is to get a part of it (reduce_scatter): what every rank is left
/// with at the end of its stages, and the one exchange that follows in place of walking the stages back. As plain data;
/// nothing is sent here.
///
/// Every element is sent at most once, by a rank that has computed it to the one that is to have it: by all ranks together,
/// N elements at most, where walking back sends N(P-1). After schedules::all_to_all with even parts there is nothing to
/// send, since each rank has computed its part.
namespace adasum::detail {

/// A rank at the end of its stages.
struct rank_at_end {
  bool has_result = false;  ///< it has survived all of them: it has combined `elements`, and knows all for the report
  index_range elements{};
  int told_by = 0;  ///< where it has not: who survived the stage in which it stayed behind

  static rank_at_end of(std::span<const stage> stages) {
    for (const auto& one : stages)
      if (!one.survives()) return {false, {}, one.members.front()};
    return {!stages.empty(), stages.empty() ? index_range{} : stages.back().part(), 0};
  }
};

/// All ranks at the end.
/// @param mine       the stages of the rank that asks
/// @param stages_of  stages_of(rank): those of any rank
template <class StagesOf>
std::vector<rank_at_end> ranks_at_end(const std::vector<stage>& mine, int size, const StagesOf& stages_of) {
  std::vector<rank_at_end> ranks(static_cast<std::size_t>(size));
  // One stage of all ranks tells what each of them has.
  const bool told_by_one = is_one_stage_of_all(mine, size) && mine.front().survivors == ranks.size();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (told_by_one)
      ranks[static_cast<std::size_t>(mine.front().members[i])] = {true, mine.front().parts[i], 0};
    else
      ranks[i] = rank_at_end::of(std::vector<stage>(stages_of(static_cast<int>(i))));
  return ranks;
}

/// The exchange among all ranks, as one of them sees it. A rank does not get what it has computed itself; of several
/// that have computed the same elements, the sender is one on the receiver's node and, among these, the one whose
/// number is nearest.
class exchange_of_parts {
 public:
  /// @param wanted  what each rank is to have: disjoint ranges
  /// @param nodes   see schedule_input
  exchange_of_parts(std::span<const rank_at_end> ranks, std::span<const index_range> wanted, std::span<const int> nodes)
      : ranks_(ranks), wanted_(wanted), nodes_(nodes) {}

  /// @return members are ranks
  /// @param leaves  of the whole reduction
  /// @throws bad_input  nobody has computed some element
  transfers of(int rank, std::size_t leaves) const {
    const auto self = static_cast<std::size_t>(rank);
    transfers found;
    const auto add = [&](std::size_t from, std::size_t to, const transfer& one) {
      if (from == self) found.sends.push_back({to, one.elements, one.leaves, one.result_norms});
      if (to == self) found.receives.push_back({from, one.elements, one.leaves, one.result_norms});
    };
    for (std::size_t to = 0; to < ranks_.size(); ++to) {
      const auto has = elements_of(to);
      for (auto at = wanted_[to].begin; at < wanted_[to].end;) {
        if (at >= has.begin && at < has.end) {
          at = has.end;
          continue;
        }
        const auto from = sender(to, at);
        auto end = std::min(wanted_[to].end, elements_of(from).end);
        if (at < has.begin && !has.empty()) end = std::min(end, has.begin);
        add(from, to, {0, {at, end}, {}});
        at = end;
      }
      if (!ranks_[to].has_result) add(told_by(to), to, {0, {}, {0, leaves}, true});
    }
    return found;
  }

 private:
  /// Of the result, what a rank has computed.
  index_range elements_of(std::size_t rank) const {
    return ranks_[rank].has_result ? ranks_[rank].elements : index_range{};
  }

  std::size_t sender(std::size_t to, std::size_t element) const {
    const auto nobody = ranks_.size();
    auto best = nobody, distance = nobody;
    bool is_near = false;  // whether the best one is on the same node
    for (std::size_t from = 0; from < ranks_.size(); ++from) {
      const auto [begin, end] = elements_of(from);
      if (element < begin || element >= end) continue;
      const bool same_node = nodes_.empty() || nodes_[from] == nodes_[to];
      const auto away = from < to ? to - from : from - to;
      if (best != nobody && (is_near > same_node || (is_near == same_node && distance <= away))) continue;
      best = from;
      distance = away;
      is_near = same_node;
    }
    if (best == nobody)
      throw bad_input({"adasum: after the stages of the schedule, no rank has element ", element, " of the result"});
    return best;
  }

  /// Which rank tells one that stayed behind: the one that went on from there or, where that one stayed behind later,
  /// the one that went on then.
  std::size_t told_by(std::size_t rank) const {
    std::size_t who = rank;
    for (std::size_t steps = 0; steps < ranks_.size(); ++steps) {
      who = static_cast<std::size_t>(ranks_[who].told_by);
      if (ranks_[who].has_result) return who;
    }
    throw bad_input({"adasum: by the stages of the schedule, no rank sends rank ", rank,
                     " the norms and weights of the gradients"});
  }

  std::span<const rank_at_end> ranks_;
  std::span<const index_range> wanted_;
  std::span<const int> nodes_;
};

}  // namespace adasum::detail
