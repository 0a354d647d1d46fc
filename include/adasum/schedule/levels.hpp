// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "../core/segments.hpp"
#include "../core/stage.hpp"
#include "../core/tree_order.hpp"
#include "partition.hpp"

/// The stages of schedules that walk up the tree level by level: recursive doubling and recursive halving.
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

/// As many parts as there are ranks. One part: vectors are never cut.
inline constexpr std::size_t any_number_of_parts = std::numeric_limits<std::size_t>::max();

/// One rank's way up the levels.
///
/// As long as vectors may be cut, each of the ranks that meet combines one part of what they hold, and goes on with that;
/// its inner products are added over all ranks that hold parts of the same vectors. Above, each combines all of what they
/// hold, and the ranks over which inner products are added stay the same.
class level_walk {
 public:
  /// @param all         the elements of a gradient
  /// @param most_parts  into which a vector may be cut
  /// @param widest      see levels_of
  level_walk(int rank, int size, std::size_t radix, index_range all, std::size_t most_parts,
             std::size_t widest = widest_prime)
      : rank_(static_cast<std::size_t>(rank)),
        levels_(levels_of(static_cast<std::size_t>(size), radix, widest)),
        radix_(radix),
        most_parts_(most_parts),
        held_(all),
        holders_{rank} {}

  std::vector<stage> stages() {
    // A rank alone meets itself.
    if (levels_.empty()) return {stage{{0}, 0, {0, 1}, 1, held_, {held_}, {0}}};
    for (const auto& on : levels_) {
      if (!on.folds) {
        meet(on, {on.radix, 0}, 1, on.radix);
        continue;
      }
      const auto nodes = leaf_folding::of(on.radix);
      if (!fold(on, nodes)) break;
      const auto most = std::bit_floor(radix_);
      for (std::size_t distance = 1, count = 1; distance < nodes.nodes; distance *= count) {
        count = std::min(most, nodes.nodes / distance);
        meet(on, nodes, distance, count);
      }
    }
    return std::move(stages_);
  }

 private:
  /// The first of this rank's pair combines both vectors. @return whether this rank goes on
  bool fold(const level& on, const leaf_folding& nodes) {
    const auto node = nodes.node_of(on.digit_of(rank_));
    if (node >= nodes.folded) return true;
    const auto first = nodes.first_leaf(node), place = on.digit_of(rank_) - first;
    stage one;
    one.self = place;
    one.survivors = 1;
    one.held = held_;
    one.parts = {held_};
    for (const auto digit : {first, first + 1}) one.members.push_back(rank_with(on, digit));
    for (const auto digit : {first, first + 1, first + 2}) one.leaf_offsets.push_back(leaf_of(on, digit));
    // Those that hold the other parts of the first vector: as many ranks further down.
    one.sum_over = holders_;
    for (auto& holder : one.sum_over) holder -= static_cast<int>(place * on.span);
    stages_.push_back(std::move(one));
    return place == 0;
  }

  /// Of the nodes that are left after folding, `count` meet: those whose numbers differ from this rank's in the digit of
  /// the weight `distance` alone.
  void meet(const level& on, const leaf_folding& nodes, std::size_t distance, std::size_t count) {
    const auto node = nodes.node_of(on.digit_of(rank_)), first = node / (distance * count) * (distance * count);
    stage one;
    one.self = node / distance % count;
    one.survivors = count;
    one.held = held_;
    const bool cuts = parts_ <= most_parts_ / count;
    for (std::size_t i = 0; i < count; ++i) {
      one.members.push_back(rank_with(on, nodes.first_leaf(first + i * distance + node % distance)));
      one.leaf_offsets.push_back(leaf_of(on, nodes.first_leaf(first + i * distance)));
      one.parts.push_back(cuts ? part_of(held_, count, i) : held_);
    }
    const auto last = first + count * distance;
    one.leaf_offsets.push_back(leaf_of(on, nodes.first_leaf(last)));
    if (cuts) {
      parts_ *= count;
      holders_ = holders(on, nodes, {first, last});
    } else {
      most_parts_ = parts_;  // whole parts from here on
    }
    one.sum_over = holders_;
    held_ = one.part();
    stages_.push_back(std::move(one));
  }

  /// The rank whose number differs from this one's in the level's digit.
  int rank_with(const level& on, std::size_t digit) const {
    return static_cast<int>(rank_ - on.digit_of(rank_) * on.span + digit * on.span);
  }
  /// The first gradient of the level's vector of that digit.
  std::size_t leaf_of(const level& on, std::size_t digit) const {
    return rank_ / on.width() * on.width() + digit * on.span;
  }
  /// The ranks with parts of the vectors of the nodes [of.begin, of.end): all that have not been folded away.
  std::vector<int> holders(const level& on, const leaf_folding& nodes, index_range of) const {
    const auto is_left = [&](std::size_t rank) {
      return std::ranges::all_of(levels_, [&](const level& one) {
        if (!one.folds || one.span > on.span) return true;
        const auto folding = leaf_folding::of(one.radix);
        return folding.first_leaf(folding.node_of(one.digit_of(rank))) == one.digit_of(rank);
      });
    };
    std::vector<int> ranks;
    const auto last = leaf_of(on, nodes.first_leaf(of.end));
    for (auto rank = leaf_of(on, nodes.first_leaf(of.begin)); rank < last; ++rank)
      if (is_left(rank)) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  std::size_t rank_;
  std::vector<level> levels_;
  std::size_t radix_, most_parts_;
  index_range held_;          // of the vector that this rank has combined
  std::size_t parts_ = 1;     // into which that vector has been cut
  std::vector<int> holders_;  // of parts of the same vector, which together make all of it
  std::vector<stage> stages_;
};

}  // namespace adasum::detail
