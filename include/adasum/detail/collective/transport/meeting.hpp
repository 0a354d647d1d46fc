// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "../../../schedule/sum_order.hpp"

namespace adasum::detail {

/// Whom one rank hears from when ranks that share memory meet: at a barrier, or to add numbers.
///
/// Each rank could read what every other one says: with P ranks, P² cache lines change hands. Instead they meet in rounds, in
/// the order in which sums go over ranks (schedule/sum_order.hpp). In a round, a rank hears from one rank of each other
/// part of a group: at most radix - 1. What it hears is that all ranks of that part have come, or the sum of their numbers.
/// After the last round, ⌈log P⌉ to the base of the radix, each has heard from all, mostly through others. Up to `radix`
/// ranks take one round, in which each hears from all others.
///
/// (An n-way dissemination barrier: Hoefler, Mehlan, Mietke, Rehm, 2006. That one sends to fixed distances; here the ranks
/// are cut into parts, so that barriers and sums are one.)
class meeting {
 public:
  /// The greatest radix.
  static constexpr std::size_t widest = sum_radix(2);

  meeting() = default;
  /// @param ranks  who meets: places among the ranks that share memory, in one order on all of them
  /// @param self   this rank's place in `ranks`
  /// @param radix  at most `widest`
  meeting(std::span<const std::size_t> ranks, std::size_t self, std::size_t radix)
      : ranks_(ranks.begin(), ranks.end()) {
    const sum_order order(ranks.size(), self, radix);
    for (std::size_t round = 0; round < order.exchanges(); ++round) {
      const auto before =
          order.visit(round, [](std::size_t) {}, [&](std::size_t place) { heard_.push_back(ranks_[place]); });
      rounds_.push_back({heard_.size(), before});
    }
  }

  std::span<const std::size_t> ranks() const { return ranks_; }
  std::size_t rounds() const { return rounds_.size(); }
  /// The ranks that this one hears from.
  std::span<const std::size_t> heard_in(std::size_t round) const {
    const auto begin = round == 0 ? 0 : rounds_[round - 1].end;
    return std::span(heard_).subspan(begin, rounds_[round].end - begin);
  }
  /// How many of these stand for parts before this rank's own.
  std::size_t before_own(std::size_t round) const { return rounds_[round].before_own; }

 private:
  struct one_round {
    std::size_t end, before_own;
  };
  std::vector<std::size_t> ranks_, heard_;
  std::vector<one_round> rounds_;
};

/// When a wait is limited by options::timeout.
enum class time_limit {
  always,
  once_all_have_begun,  ///< this run: until then, they may still compute their gradients
  never,                ///< others may be at work elsewhere, or compute the next piece of their gradients
};

/// The radix of meetings where nothing is added.
inline constexpr std::size_t barrier_radix = meeting::widest;

}  // namespace adasum::detail
