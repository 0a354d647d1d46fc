// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/stage.hpp"
#include "../core/tree_order.hpp"

/// Walks through the stages of all ranks without a message: who holds which elements of which subtree. Knows stages by
/// their description in core/stage.hpp alone, and nothing of the code that carries them out.
namespace adasum::detail {

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

inline void require(bool holds, const std::string& what) {
  if (!holds) throw bad_input(what);
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

/// All ranks' stages of one schedule. Each check throws a bad_input that says what does not fit.
class schedule_simulation {
 public:
  template <class Schedule>
  schedule_simulation(const Schedule& order, int size, const schedule_input& input) : all_{0, input.length} {
    const auto leaves = leaves_of(order, size, input);
    for (int rank = 0; rank < size; ++rank) {
      const auto leaf = leaves[static_cast<std::size_t>(rank)];
      ranks_.push_back({order.stages(rank, size, input), 0, {leaf, leaf + 1}, all_, std::to_string(leaf)});
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      require(size == 1 || !ranks_[r].stages.empty(), rank_name(r) + " has no stage");
      for (const auto& stage : ranks_[r].stages) require_sound(stage, r);
      require_sound_groups(r);
    }
  }

  /// Members agree on each stage, and bring what the stages before left them with.
  void combine() {
    walk([](const rank_state& rank) { return rank.done < rank.stages.size() ? &rank.stages[rank.done] : nullptr; },
         [this](const stage& stage) { meet(stage); });
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      require(ranks_[r].done == ranks_[r].stages.size(),
              rank_name(r) + " waits for ever at its stage " + std::to_string(ranks_[r].done));
  }

  /// After combine(): what is held of the root is everything, and each rank holds the root or waits for it.
  /// @param tree  what the root must be, written out; empty: the same on all ranks
  void require_root(std::string tree) const {
    std::vector<index_range> held;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto& rank = ranks_[r];
      if (!rank.stages.empty() && !rank.stages.back().survives()) continue;
      if (tree.empty()) tree = rank.tree;
      require(rank.tree == tree, rank_name(r) + " ends with the tree " + rank.tree + " instead of " + tree);
      require(rank.leaves == index_range{0, ranks_.size()}, rank_name(r) + " ends with only some of the gradients");
      held.push_back(rank.held);
    }
    std::ranges::sort(held, {}, [](index_range r) { return std::pair(r.begin, r.end); });
    std::size_t covered = 0;
    for (const auto& part : held) {
      require(part.begin <= covered, "nobody holds element " + std::to_string(covered) + " of the result");
      covered = std::max(covered, part.end);
    }
    require(covered == all_.end, "nobody holds the end of the result");
  }
  void require_root() const { require_root(defining_tree(ranks_.size())); }

  /// After combine(): walking backwards, everybody gets everything.
  void gather() {
    walk([](const rank_state& rank) { return rank.done > 0 ? &rank.stages[rank.done - 1] : nullptr; },
         [this](const stage& stage) {
           // Nothing is sent back then.
           if (stage.replicated())
             require(std::ranges::all_of(stage.parts, [&](index_range part) { return part == stage.held; }),
                     "a survivor of a replicated stage does not combine all elements that are held");
           for (std::size_t i = 0; i < stage.members.size(); ++i) {
             auto& member = at(stage.members[i]);
             if (i < stage.survivors) require(member.held == stage.parts[i], "a survivor has not got its part back");
             member.held = stage.held;
             --member.done;
           }
         });
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      require(ranks_[r].done == 0 && ranks_[r].held == all_, rank_name(r) + " does not get the whole result");
  }

  /// The ranks over which inner products are summed hold parts of the same vectors, and together all of them.
  void require_sums() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const auto& stage : ranks_[r].stages) {
        if (!stage.survives()) continue;
        require(std::ranges::count(stage.sum_over, static_cast<int>(r)) == 1,
                rank_name(r) + " is not in its own sum_over exactly once");
        std::vector<index_range> parts;
        for (const int peer : stage.sum_over) {
          const auto& theirs = stage_with_leaves(peer, stage.leaf_offsets);
          require(theirs.survives(), "a sum includes a rank that waits");
          require(theirs.sum_over == stage.sum_over, "ranks disagree on which ranks to sum over");
          parts.push_back(theirs.part());
        }
        std::ranges::sort(parts, {}, [](index_range p) { return std::pair(p.begin, p.end); });
        require(partition(parts, all_), "a sum misses elements or counts them twice");
      }
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

  /// Which leaf each rank's gradient is.
  template <class Schedule>
  static std::vector<std::size_t> leaves_of(const Schedule& order, int size, const schedule_input& input) {
    std::vector<std::size_t> leaves(static_cast<std::size_t>(size));
    std::iota(leaves.begin(), leaves.end(), std::size_t{0});
    if constexpr (requires { order.leaf_ranks(size, input); }) {
      const std::vector<int> ranks = order.leaf_ranks(size, input);
      if (ranks.empty()) return leaves;
      std::vector<int> sorted = ranks, each(leaves.begin(), leaves.end());
      std::ranges::sort(sorted);
      require(sorted == each, "leaf_ranks does not name each rank exactly once");
      for (std::size_t leaf = 0; leaf < ranks.size(); ++leaf) leaves[static_cast<std::size_t>(ranks[leaf])] = leaf;
    }
    return leaves;
  }

  /// What one stage says must make sense by itself.
  void require_sound(const stage& stage, std::size_t rank) const {
    const auto count = stage.members.size();
    const auto is_rank = [&](int member) { return member >= 0 && static_cast<std::size_t>(member) < ranks_.size(); };
    require(std::ranges::all_of(stage.members, is_rank) && std::ranges::all_of(stage.sum_over, is_rank),
            rank_name(rank) + " has a stage with a rank that does not exist");
    require(stage.self < count && stage.members[stage.self] == static_cast<int>(rank),
            rank_name(rank) + " is not members[self] in one of its stages");
    require(stage.leaf_offsets.size() == count + 1, "a stage does not have one subtree for each member");
    require(stage.survivors >= 1 && stage.survivors <= count, "a stage has no survivor, or more survivors than members");
    require(stage.parts.size() == stage.survivors, "a stage does not have one part for each survivor");
    const bool each_has_all = std::ranges::all_of(stage.parts, [&](index_range p) { return p == stage.held; });
    require(each_has_all || partition(stage.parts, stage.held), "the parts are neither a partition nor everything");
    require(!stage.published || (each_has_all && ranks_[rank].stages.size() == 1),
            "a stage is published, but is not the only one, or not replicated");
    require(!stage.grouped || stage.survivors == 1 || !stage.replicated(),
            "a stage is grouped, but its survivors do not have parts of their own");
  }

  /// In memory that ranks share, groups meet at the same stage, and the ranks that add numbers become more, but for those
  /// that wait.
  void require_sound_groups(std::size_t rank) const {
    const auto& stages = ranks_[rank].stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (!stages[i].grouped) continue;
      require(i == 0 || stages[i - 1].grouped, "a stage is grouped, and follows one that is not");
      for (const int member : stages[i].members) {
        const auto& theirs = ranks_[static_cast<std::size_t>(member)].stages;
        require(i < theirs.size() && theirs[i].members == stages[i].members,
                "ranks that meet at a grouped stage have been through different numbers of stages");
      }
      if (i == 0) continue;
      for (const int one : stages[i - 1].sum_over) {
        const auto& theirs = ranks_[static_cast<std::size_t>(one)].stages;
        const bool waits = i < theirs.size() && !theirs[i].survives();
        require(waits || std::ranges::count(stages[i].sum_over, one) == 1,
                "a grouped stage adds over fewer ranks than the last");
      }
    }
  }

  /// Runs every stage at which all members have arrived, until none is left. current(rank) is where a rank stands.
  template <class Current, class Run>
  void walk(Current current, Run run) {
    for (bool moved = true; std::exchange(moved, false);)
      for (const auto& rank : ranks_) {
        const stage* const stage = current(rank);
        if (stage == nullptr || stage->self != 0) continue;
        const bool complete = std::ranges::all_of(stage->members, [&](int member) {
          const auto* const theirs = current(at(member));
          return theirs != nullptr && theirs->members == stage->members;
        });
        if (!complete) continue;
        run(*stage);
        moved = true;
      }
  }

  void meet(const stage& stage) {
    const auto count = stage.members.size();
    std::vector<std::string> trees;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& member = at(stage.members[i]);
      const auto& theirs = member.stages[member.done];
      auto expected = stage;  // but for what is the member's own
      expected.self = i;
      expected.sum_over = theirs.sum_over;
      require(theirs == expected, "the members of a stage disagree");
      require(member.leaves == index_range{stage.leaf_offsets[i], stage.leaf_offsets[i + 1]},
              rank_name(stage.members[i]) + " brings the wrong gradients to a stage");
      require(member.held == stage.held,
              rank_name(stage.members[i]) + " brings the wrong elements to a stage");
      trees.push_back(member.tree);
    }
    const auto tree = combined(trees);
    for (std::size_t i = 0; i < count; ++i) {
      auto& member = at(stage.members[i]);
      ++member.done;
      if (i >= stage.survivors) {
        require(member.done == member.stages.size(), "a rank waits and has further stages");
        continue;
      }
      member.tree = tree;
      member.held = stage.parts[i];
      member.leaves = {stage.leaf_offsets.front(), stage.leaf_offsets.back()};
    }
  }

  const stage& stage_with_leaves(int rank, const std::vector<std::size_t>& leaves) const {
    for (const auto& stage : ranks_[static_cast<std::size_t>(rank)].stages)
      if (stage.leaf_offsets == leaves) return stage;
    throw bad_input("a sum includes a rank that holds no part of the same subtrees");
  }

  index_range all_;
  std::vector<rank_state> ranks_;
};

}  // namespace adasum::detail
