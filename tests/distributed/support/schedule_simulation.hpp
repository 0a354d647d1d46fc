// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <adasum/core/stage.hpp>
#include <adasum/core/tree_order.hpp>

/// Walks through the stages of all ranks without a message: who holds which elements of which subtree.
namespace adasum::test {

/// The tree over some subtrees, written out: "((0 1) 2)".
inline std::string combined(std::vector<std::string> trees) {
  for_each_merge(trees.size(), [&](std::size_t first, std::size_t middle, std::size_t) {
    trees[first] = "(" + trees[first] + " " + trees[middle] + ")";
  });
  return trees.front();
}

/// The tree over the gradients 0 … count - 1 that defines their combination.
inline std::string defining_tree(std::size_t count) {
  std::vector<std::string> leaves;
  for (std::size_t i = 0; i < count; ++i) leaves.push_back(std::to_string(i));
  return combined(leaves);
}

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Whether the ranges follow each other from whole.begin to whole.end.
inline bool partition(const std::vector<index_range>& parts, index_range whole) {
  auto at = whole.begin;
  for (const auto& part : parts) {
    if (part.begin != at || part.end < part.begin) return false;
    at = part.end;
  }
  return at == whole.end;
}

/// All ranks' stages of one schedule. Each check throws std::logic_error that says what does not fit.
class schedule_simulation {
 public:
  template <class Schedule>
  schedule_simulation(const Schedule& order, int size, const problem& what) : all_{0, what.length} {
    for (int rank = 0; rank < size; ++rank) {
      const auto leaf = static_cast<std::size_t>(rank);
      ranks_.push_back({order.stages(rank, size, what), 0, {leaf, leaf + 1}, all_, std::to_string(rank)});
    }
  }

  /// Members agree on each stage, and bring what the stages before left them with.
  void combine() {
    walk([](const rank_state& rank) { return rank.done < rank.stages.size() ? &rank.stages[rank.done] : nullptr; },
         [this](const stage& level) { meet(level); });
    for (const auto& rank : ranks_) require(rank.done == rank.stages.size(), "a stage waits for ever");
  }

  /// After combine(): what is held of the root is everything, and each rank holds the root or waits for it.
  void require_root() const {
    const auto root = defining_tree(ranks_.size());
    std::vector<index_range> held;
    for (const auto& rank : ranks_) {
      const bool waits = !rank.stages.back().survives();
      require(waits || rank.tree == root, "a rank ends with another tree than the defining one");
      if (!waits) held.push_back(rank.held);
    }
    std::ranges::sort(held, {}, [](index_range r) { return std::pair(r.begin, r.end); });
    std::size_t covered = 0;
    for (const auto& part : held) {
      require(part.begin <= covered, "nobody holds some element of the result");
      covered = std::max(covered, part.end);
    }
    require(covered == all_.end, "nobody holds the end of the result");
  }

  /// After combine(): walking backwards, everybody gets everything.
  void gather() {
    walk([](const rank_state& rank) { return rank.done > 0 ? &rank.stages[rank.done - 1] : nullptr; },
         [this](const stage& level) {
           for (std::size_t i = 0; i < level.members.size(); ++i) {
             auto& member = at(level.members[i]);
             if (i < level.survivors) require(member.held == level.parts[i], "a survivor has not got its part back");
             member.held = level.held;
             --member.done;
           }
         });
    for (const auto& rank : ranks_)
      require(rank.done == 0 && rank.held == all_, "a rank does not get the whole result");
  }

  /// The ranks over which inner products are summed hold parts of the same vectors, and together all of them.
  void require_sums() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto& level : ranks_[r].stages) {
        if (!level.survives()) continue;
        require(std::ranges::count(level.sum_over, static_cast<int>(r)) == 1, "a rank is not once in its own sum");
        std::vector<index_range> parts;
        for (const int peer : level.sum_over) {
          const auto& theirs = stage_with_leaves(peer, level.leaves.front(), level.leaves.back());
          require(theirs.leaves == level.leaves, "a sum over different subtrees");
          require(theirs.sum_over == level.sum_over, "ranks disagree over whom to sum");
          parts.push_back(theirs.parts[theirs.self]);
        }
        std::ranges::sort(parts, {}, [](index_range p) { return std::pair(p.begin, p.end); });
        require(partition(parts, all_), "a sum misses elements or counts them twice");
      }
  }

  /// Elements that a rank sends, from the meaning of a stage.
  std::size_t elements_sent(std::size_t rank) const {
    std::size_t sent = 0;
    for (const auto& level : ranks_[rank].stages) {
      for (std::size_t i = 0; i < level.survivors; ++i)
        if (i != level.self) sent += level.parts[i].size();
      if (!level.survives()) continue;
      const auto waiting = level.members.size() - level.survivors;
      if (!level.replicated())
        sent += level.parts[level.self].size() * (level.members.size() - 1);
      else if (level.self == 0)
        sent += level.held.size() * waiting;
    }
    return sent;
  }

  const std::vector<stage>& stages(std::size_t rank) const { return ranks_[rank].stages; }
  std::size_t size() const { return ranks_.size(); }

 private:
  struct rank_state {
    std::vector<stage> stages;
    std::size_t done;    // stages that lie behind this rank
    index_range leaves;  // the gradients that its vector combines
    index_range held;    // the elements of that vector that it holds
    std::string tree;    // how they were combined
  };

  rank_state& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  /// Runs every stage at which all members have arrived, until none is left. current(rank) is where a rank stands.
  template <class Current, class Run>
  void walk(Current current, Run run) {
    for (bool moved = true; std::exchange(moved, false);)
      for (const auto& rank : ranks_) {
        const stage* const level = current(rank);
        if (level == nullptr || level->self != 0) continue;
        const bool complete = std::ranges::all_of(level->members, [&](int member) {
          const stage* const theirs = current(at(member));
          return theirs != nullptr && theirs->members == level->members;
        });
        if (!complete) continue;
        run(*level);
        moved = true;
      }
  }

  void meet(const stage& level) {
    const auto count = level.members.size();
    require(level.leaves.size() == count + 1, "a stage has not one subtree for each member");
    require(level.survivors >= 1 && level.survivors <= count, "a stage has no survivor");
    require(level.parts.size() == level.survivors, "a stage has not one part for each survivor");
    require(std::ranges::all_of(level.parts, [&](index_range p) { return p == level.held; }) ||
                partition(level.parts, level.held),
            "the parts are neither a partition nor everything");
    std::vector<std::string> trees;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& member = at(level.members[i]);
      const auto& theirs = member.stages[member.done];
      require(theirs.self == i && theirs.leaves == level.leaves && theirs.survivors == level.survivors &&
                  theirs.held == level.held && theirs.parts == level.parts,
              "the members of a stage disagree");
      require(member.leaves == index_range{level.leaves[i], level.leaves[i + 1]}, "a member brings other gradients");
      require(member.held == level.held, "a member brings other elements");
      trees.push_back(member.tree);
    }
    const auto tree = combined(trees);
    for (std::size_t i = 0; i < count; ++i) {
      auto& member = at(level.members[i]);
      ++member.done;
      if (i >= level.survivors) {
        require(member.done == member.stages.size(), "a rank waits and has further stages");
        continue;
      }
      member.tree = tree;
      member.held = level.parts[i];
      member.leaves = {level.leaves.front(), level.leaves.back()};
    }
  }

  const stage& stage_with_leaves(int rank, std::size_t first, std::size_t last) const {
    for (const auto& level : ranks_[static_cast<std::size_t>(rank)].stages)
      if (level.leaves.front() == first && level.leaves.back() == last) return level;
    throw std::logic_error("a sum over a rank that holds no part of the subtree");
  }

  index_range all_;
  std::vector<rank_state> ranks_;
};

}  // namespace adasum::test
