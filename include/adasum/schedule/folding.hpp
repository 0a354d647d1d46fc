// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <vector>

#include "../core/stage.hpp"
#include "../core/tree_order.hpp"

/// What schedules for a power of two of ranks have in common: how ranks beyond it are folded away first, and which ranks
/// meet then.
namespace adasum::detail {

/// The 2^k subtrees that remain after folding; one of two leaves is held by the first of them.
class subtree_numbering {
 public:
  explicit subtree_numbering(int size) : folding_(leaf_folding::of(static_cast<std::size_t>(size))) {}

  std::size_t count() const { return folding_.nodes; }
  std::size_t subtree_of(int rank) const { return folding_.node_of(static_cast<std::size_t>(rank)); }
  int rank_of(std::size_t subtree) const { return static_cast<int>(folding_.first_leaf(subtree)); }

  /// The stage at which the subtrees that differ from `self` only in the digit of weight `distance` (base `radix`) meet:
  /// members and their leaves. The caller says what they do with the elements.
  stage meet(std::size_t self, std::size_t distance, std::size_t radix) const {
    const auto group = self / (distance * radix) * (distance * radix);
    stage one;
    one.self = self / distance % radix;
    one.survivors = radix;
    for (std::size_t i = 0; i < radix; ++i) {
      one.members.push_back(rank_of(group + self % distance + i * distance));
      one.leaf_offsets.push_back(folding_.first_leaf(group + i * distance));
    }
    one.leaf_offsets.push_back(folding_.first_leaf(group + radix * distance));
    return one;
  }

  /// The ranks of the `count` subtrees around `self` whose numbers differ only below `count`.
  std::vector<int> neighbourhood(std::size_t self, std::size_t count) const {
    std::vector<int> ranks;
    const auto first = self / count * count;
    for (auto subtree = first; subtree < first + count; ++subtree) ranks.push_back(rank_of(subtree));
    return ranks;
  }

 private:
  leaf_folding folding_;
};

/// The first stage where the number of ranks is not a power of two: for some pairs (2i, 2i + 1), rank 2i combines both
/// gradients and rank 2i + 1 waits for the result. None for the other ranks. A rank alone meets itself.
inline std::vector<stage> fold(int rank, int size, index_range all) {
  const auto folding = leaf_folding::of(static_cast<std::size_t>(size));
  if (size == 1) return {stage{{0}, 0, {0, 1}, 1, all, {all}, {0}}};
  const auto leaf = static_cast<std::size_t>(rank);
  if (leaf >= 2 * folding.folded) return {};
  const auto first = leaf / 2 * 2;
  const int keeper = static_cast<int>(first);
  return {stage{{keeper, keeper + 1}, leaf - first, {first, first + 1, first + 2}, 1, all, {all}, {keeper}}};
}

/// Whether the rank goes on after folding.
inline bool goes_on(const std::vector<stage>& stages) { return stages.empty() || stages.back().survives(); }

}  // namespace adasum::detail
