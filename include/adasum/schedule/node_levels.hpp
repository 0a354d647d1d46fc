// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "../core/stage.hpp"
#include "levels.hpp"
#include "partition.hpp"

namespace adasum::detail {

/// A radix that makes one level of any number of ranks.
inline constexpr std::size_t one_level = std::numeric_limits<std::size_t>::max();

/// How the ranks of one node combine their gradients level by level, so that in the end each of some of them, the carriers,
/// has one share of the combination. Nodes of different sizes make the same number of shares of the same elements.
///
/// The levels are those of levels.hpp, but nobody is folded, so that the tree is that of as many gradients
/// (core/tree_order.hpp). At a level of radix q, q ranks meet that hold the same shares, s of them. The first min(q, s) of
/// them divide these among themselves, and go on; the others have none, and wait for the result. Here 5 of 6 = 2 · 3 ranks
/// carry one of 5 shares each:
///
///     rank         0      1      2      3      4      5
///     level of 2   01────234     01────234     01────234
///     level of 3   0      2      1      3      -      4
///
/// Where there are as many shares as ranks, all go on at each level, with the same number of shares each.
///
/// Ranks are named by their places in the node here, and gradients likewise.
class node_levels {
 public:
  /// @param ranks   of the node, at least 1
  /// @param shares  at least 1, at most as many as ranks
  /// @param radix   the most ranks that meet at a level; a prime factor of their number that is larger is a level all the
  ///                same
  node_levels(std::size_t ranks, std::size_t shares, std::size_t radix)
      : levels_(levels_of(ranks, radix, ranks)), shares_(shares), carriers_(shares) {
    if (levels_.empty()) levels_.push_back({1, 1, false});  // a rank alone meets itself
    for (std::size_t place = 0; place < ranks; ++place)
      if (const auto held = shares_of(place, levels_.size()); !held.empty()) carriers_[held.begin] = place;
  }

  /// The rank that has a share in the end.
  std::size_t carrier_of(std::size_t share) const { return carriers_[share]; }
  /// And the other way round; none for a rank that has stayed behind.
  std::optional<std::size_t> share_of(std::size_t place) const {
    const auto found = std::ranges::find(carriers_, place);
    if (found == carriers_.end()) return {};
    return static_cast<std::size_t>(found - carriers_.begin());
  }

  /// @param all   the elements of a gradient
  /// @param cuts  whether a share is a part of them; otherwise each is all, and whoever goes on combines all
  std::vector<stage> stages(std::size_t place, index_range all, bool cuts) const {
    std::vector<stage> found;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const auto& on = levels_[l];
      const auto shares = shares_of(place, l);
      if (shares.empty()) break;
      const auto elements = [&](index_range some) { return cuts ? elements_of(some, all) : all; };
      const auto first = place / on.width() * on.width();
      stage one;
      one.self = on.digit_of(place);
      one.survivors = std::min(on.radix, shares.size());
      one.held = elements(shares);
      for (std::size_t i = 0; i < on.radix; ++i)
        one.members.push_back(static_cast<int>(first + i * on.span + place % on.span));
      for (std::size_t i = 0; i <= on.radix; ++i) one.leaf_offsets.push_back(first + i * on.span);
      for (std::size_t i = 0; i < one.survivors; ++i) one.parts.push_back(elements(part_of(shares, one.survivors, i)));
      if (!cuts)
        one.sum_over = {static_cast<int>(place)};
      else
        for (auto other = first; other < first + on.width(); ++other)
          if (!shares_of(other, l + 1).empty()) one.sum_over.push_back(static_cast<int>(other));
      one.grouped = cuts && levels_.size() > 1;
      found.push_back(std::move(one));
    }
    return found;
  }

 private:
  /// The shares that a rank holds after so many levels; none if it has stayed behind.
  index_range shares_of(std::size_t place, std::size_t levels) const {
    index_range held{0, shares_};
    for (std::size_t l = 0; l < levels; ++l) {
      const auto going_on = std::min(levels_[l].radix, held.size()), digit = levels_[l].digit_of(place);
      if (digit >= going_on) return {};
      held = part_of(held, going_on, digit);
    }
    return held;
  }
  index_range elements_of(index_range shares, index_range all) const {
    const auto begin_of = [&](std::size_t share) { return part_of(all, shares_, share).begin; };
    return {begin_of(shares.begin), begin_of(shares.end)};
  }

  std::vector<level> levels_;
  std::size_t shares_;
  std::vector<std::size_t> carriers_;  // by share
};

}  // namespace adasum::detail
