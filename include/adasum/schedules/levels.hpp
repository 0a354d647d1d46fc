// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/segments.hpp"
#include "../core/stage.hpp"
#include "../core/tree_order.hpp"
#include "partition.hpp"

/// The stages of schedules that walk up the tree level by level: recursive doubling, recursive halving, and those in memory
/// that ranks share and inside nodes.
///
/// The number of ranks is a product of small numbers, the radices of the levels: 96 = 4 · 4 · 6. Written in that mixed
/// radix, a rank's number has one digit for each level, and at a level of radix q those q ranks meet whose numbers differ in
/// its digit alone. So every rank has a part at every level, and nobody waits.
///
/// Only a large prime factor would make too many ranks meet. At such a level, pairs of vectors are folded first: the ranks
/// with the first of them combine both, the others wait for the result. That leaves a power of two of vectors.
namespace adasum::detail {

/// A prime factor up to this one is a level whatever the radix; a larger one is folded, unless the radix allows it.
///
/// By the model of cost.hpp, where short vectors are exchanged whole: among 7 ranks, folding takes four exchanges of one
/// message, and one exchange of six costs less up to 9 KiB. Among 11 it takes five, and one of ten costs less up to 4 KiB
/// only. Where vectors are cut, levels would pay up to primes near 100: schedules::automatic compares radices that allow
/// them.
inline constexpr std::size_t widest_prime = 7;

/// One level: every `radix` consecutive vectors become one.
struct level {
  std::size_t span;   ///< gradients in each of these vectors
  std::size_t radix;  ///< a prime factor of the number of ranks, or the product of several
  bool folds;         ///< pairs of vectors are folded first

  std::size_t width() const { return span * radix; }  ///< gradients in what they become
  std::size_t digit_of(std::size_t rank) const { return rank / span % radix; }
  friend bool operator==(const level&, const level&) = default;
};

/// The levels for a number of ranks. Prime factors are taken in ascending order, and consecutive ones are one level as long
/// as their product is at most the radix.
/// @param widest  prime factors above this one, and above the radix, are folded
inline std::vector<level> levels_of(std::size_t ranks, std::size_t radix, std::size_t widest = widest_prime) {
  std::vector<level> levels;
  for (std::size_t span = 1, factor = 2; span < ranks; span *= factor) {
    factor = smallest_factor(ranks / span, factor);
    if (!levels.empty() && levels.back().radix * factor <= radix)
      levels.back().radix *= factor;
    else
      levels.push_back({span, factor, factor > std::max(radix, widest)});
  }
  return levels;
}

/// A radix that makes one level of any number of ranks.
inline constexpr std::size_t one_level = std::numeric_limits<std::size_t>::max();

/// What becomes of prime factors that are wider than widest_prime and the radix.
enum class large_primes {
  folded,  ///< pairs of vectors are folded first
  kept,    ///< they are levels: in memory that ranks share, and inside a node
};

/// How a number of ranks combine their gradients level by level, so that in the end each of some of them, the carriers, has
/// one share of the combination. Nodes of different sizes make the same number of shares of the same elements.
///
/// At a level of radix q, q ranks meet that hold the same shares, s of them. The first min(q, s) of them divide these among
/// themselves, and go on; the others have none, and wait for the result. Here 5 of 6 = 2 · 3 ranks carry one of 5 shares
/// each:
///
///     rank         0      1      2      3      4      5
///     level of 2   01────234     01────234     01────234
///     level of 3   0      2      1      3      -      4
///
/// Where there are as many shares as ranks, all go on at each level, with the same number of shares each.
class level_tree {
 public:
  /// @param ranks   at least 1
  /// @param radix   the most ranks that meet at a level; a prime factor of their number that is larger and kept is a level
  ///                all the same
  /// @param shares  of the gradient, at most as many as ranks, where primes are kept; 0: each level cuts by itself what its
  ///                ranks hold
  level_tree(std::size_t ranks, std::size_t radix, large_primes wide = large_primes::folded, std::size_t shares = 0)
      : levels_(levels_of(ranks, radix, wide == large_primes::kept ? ranks : widest_prime)),
        radix_(radix),
        shares_(shares),
        cuts_by_shares_(shares > 0),
        in_groups_(wide == large_primes::kept && levels_.size() > 1) {
    if (levels_.empty()) levels_.push_back({1, 1, false});  // a rank alone meets itself
  }

  /// The share that a rank has in the end; none for a rank that has stayed behind.
  std::optional<std::size_t> share_of(std::size_t rank) const {
    const auto held = shares_of(rank, levels_.size());
    return held.empty() ? std::nullopt : std::optional(held.begin);
  }
  /// And the other way round: the rank that has each share.
  std::vector<std::size_t> carriers() const {
    std::vector<std::size_t> found(shares_);
    for (std::size_t rank = 0; rank < levels_.back().width(); ++rank)
      if (const auto share = share_of(rank)) found[*share] = rank;
    return found;
  }

  /// @param all         the elements of a gradient
  /// @param most_parts  into which a vector may be cut
  std::vector<stage> stages(std::size_t rank, index_range all, std::size_t most_parts = any_number_of_parts) const;

 private:
  friend class level_walk;

  /// The shares that a rank holds after so many levels; none if it has stayed behind.
  index_range shares_of(std::size_t rank, std::size_t levels) const {
    index_range held{0, shares_};
    for (std::size_t l = 0; l < levels; ++l) {
      const auto digit = levels_[l].digit_of(rank), going_on = std::min(levels_[l].radix, held.size());
      if (digit >= going_on) return {};
      held = part_of(held, going_on, digit);
    }
    return held;
  }
  /// Whether a rank goes on after so many levels.
  bool goes_on(std::size_t rank, std::size_t levels) const {
    if (cuts_by_shares_) return !shares_of(rank, levels).empty();
    for (std::size_t l = 0; l < levels; ++l) {
      if (!levels_[l].folds) continue;
      const auto nodes = leaf_folding::of(levels_[l].radix);
      const auto digit = levels_[l].digit_of(rank);
      if (nodes.first_leaf(nodes.node_of(digit)) != digit) return false;
    }
    return true;
  }

  std::vector<level> levels_;
  std::size_t radix_, shares_;
  bool cuts_by_shares_, in_groups_;
};

/// One rank's way up the levels.
///
/// As long as vectors may be cut, each of the ranks that meet combines one part of what they hold, and goes on with that;
/// its inner products are added over all ranks that hold parts of the same vectors. Above, each combines all of what they
/// hold, and the ranks over which inner products are added stay the same.
class level_walk {
 public:
  level_walk(const level_tree& tree, std::size_t rank, index_range all, std::size_t most_parts)
      : tree_(tree),
        rank_(rank),
        all_(all),
        most_parts_(most_parts),
        held_(all),
        shares_{0, tree.shares_},
        holders_{static_cast<int>(rank)} {}

  std::vector<stage> stages() {
    for (std::size_t l = 0; l < tree_.levels_.size() && goes_on(); ++l) {
      const auto& on = tree_.levels_[l];
      if (!on.folds) {
        meet(l, {on.radix, 0}, 1, on.radix);
        continue;
      }
      const auto nodes = leaf_folding::of(on.radix);
      fold(on, nodes);
      const auto most = std::bit_floor(tree_.radix_);
      for (std::size_t distance = 1, count = 1; distance < nodes.nodes && goes_on(); distance *= count) {
        count = std::min(most, nodes.nodes / distance);
        meet(l, nodes, distance, count);
      }
    }
    return std::move(stages_);
  }

 private:
  bool goes_on() const { return stages_.empty() || stages_.back().survives(); }

  /// Of the vectors of a level (nodes), `count` from the first on meet, each `distance` behind the one before. Each is with
  /// the rank whose number differs from this one's in the level's digit alone.
  stage meeting(const level& on, const leaf_folding& nodes, std::size_t first, std::size_t distance,
                std::size_t count) const {
    const auto digit = on.digit_of(rank_), node = nodes.node_of(digit), group = rank_ / on.width() * on.width();
    stage one;
    one.self = (node - first) / distance;
    one.held = held_;
    for (std::size_t i = 0; i <= count; ++i) {
      const auto begin = first + i * distance;
      one.leaf_offsets.push_back(group + nodes.first_leaf(begin) * on.span);
      if (i == count) break;
      const auto other = nodes.first_leaf(begin + node % distance);
      one.members.push_back(static_cast<int>(rank_ - digit * on.span + other * on.span));
    }
    return one;
  }

  /// The first of this rank's pair combines both vectors.
  void fold(const level& on, const leaf_folding& nodes) {
    const auto node = nodes.node_of(on.digit_of(rank_));
    if (node >= nodes.folded) return;
    auto one = meeting(on, {on.radix, 0}, nodes.first_leaf(node), 1, 2);
    one.survivors = 1;
    one.parts = {held_};
    // Those that hold the other parts of the first vector: as many ranks further down.
    one.sum_over = holders_;
    for (auto& holder : one.sum_over) holder -= static_cast<int>(one.self * on.span);
    stages_.push_back(std::move(one));
  }

  /// Of the nodes that are left after folding, `count` meet: those whose numbers differ from this rank's in the digit of
  /// the weight `distance` alone.
  void meet(std::size_t l, const leaf_folding& nodes, std::size_t distance, std::size_t count) {
    const auto& on = tree_.levels_[l];
    const auto node = nodes.node_of(on.digit_of(rank_));
    auto one = meeting(on, nodes, node / (distance * count) * (distance * count), distance, count);
    one.survivors = tree_.cuts_by_shares_ ? std::min(count, shares_.size()) : count;
    const bool cuts = parts_ <= most_parts_ / count;
    for (std::size_t i = 0; i < one.survivors; ++i)
      one.parts.push_back(!cuts                   ? held_
                          : tree_.cuts_by_shares_ ? elements_of(part_of(shares_, one.survivors, i))
                                                  : part_of(held_, one.survivors, i));
    if (cuts) {
      parts_ *= count;
      holders_.clear();
      for (auto rank = one.leaf_offsets.front(); rank < one.leaf_offsets.back(); ++rank)
        if (tree_.goes_on(rank, l + 1)) holders_.push_back(static_cast<int>(rank));
    } else {
      most_parts_ = parts_;  // whole parts from here on
    }
    one.sum_over = holders_;
    one.grouped = cuts && tree_.in_groups_;
    if (one.survives()) {
      held_ = one.part();
      if (tree_.cuts_by_shares_) shares_ = part_of(shares_, one.survivors, one.self);
    }
    stages_.push_back(std::move(one));
  }

  index_range elements_of(index_range shares) const {
    return {part_of(all_, tree_.shares_, shares.begin).begin, part_of(all_, tree_.shares_, shares.end).begin};
  }

  const level_tree& tree_;
  std::size_t rank_;
  index_range all_;
  std::size_t most_parts_;
  index_range held_;          // of the vector that this rank has combined
  index_range shares_;        // that these elements are, where they are cut so
  std::size_t parts_ = 1;     // into which that vector has been cut
  std::vector<int> holders_;  // of parts of the same vector, which together make all of it
  std::vector<stage> stages_;
};

inline std::vector<stage> level_tree::stages(std::size_t rank, index_range all, std::size_t most_parts) const {
  return level_walk(*this, rank, all, most_parts).stages();
}

/// The stages of one of so many ranks, of a gradient of so many elements.
inline std::vector<stage> stages_by_levels(int rank, int size, std::size_t length, std::size_t radix,
                                           std::size_t most_parts = any_number_of_parts,
                                           large_primes wide = large_primes::folded) {
  return level_tree(static_cast<std::size_t>(size), radix, wide)
      .stages(static_cast<std::size_t>(rank), {0, length}, most_parts);
}

/// @throws bad_input  the radix is less than 2
inline void require_radix(std::size_t radix, const char* schedule) {
  if (radix < 2) throw bad_input({"adasum::schedules::", schedule, ": the radix ", radix, " is less than 2"});
}

}  // namespace adasum::detail
