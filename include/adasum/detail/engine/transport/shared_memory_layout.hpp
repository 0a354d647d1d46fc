// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../schedules/sum_order.hpp"
#include "../../references/shared_window_ref.hpp"

namespace adasum::detail {

/// Whom one rank hears from when ranks that share memory meet: at a barrier, or to add numbers.
///
/// Each rank could read what every other one says: with P ranks, P² cache lines change hands. Instead they meet in rounds, in
/// the order in which sums go over ranks (schedules/sum_order.hpp). In a round, a rank hears from one rank of each other
/// part of a group: at most radix - 1. What it hears is that all ranks of that part have come, or the sum of their numbers.
/// After the last round, ⌈log P⌉ to the base of the radix, each has heard from all, mostly through others. Up to `radix`
/// ranks take one round, in which each hears from all others.
///
/// (An n-way dissemination barrier: Hoefler, Mehlan, Mietke, Rehm, 2006. That one sends to fixed distances; here the ranks
/// are cut into parts, so that barriers and sums are one.)
class barrier_pattern {
 public:
  /// The greatest radix.
  static constexpr std::size_t widest = sum_radix(2);

  barrier_pattern() = default;
  /// @param ranks  who meets: places among the ranks that share memory, in one order on all of them
  /// @param self   this rank's place in `ranks`
  /// @param radix  at most `widest`
  barrier_pattern(std::span<const std::size_t> ranks, std::size_t self, std::size_t radix)
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

/// The radix where nothing is added.
inline constexpr std::size_t barrier_radix = barrier_pattern::widest;

/// What each rank has in shared memory, besides its control block.
struct shared_sizes {
  std::size_t sums = 0;            ///< the most doubles that are published at once
  std::size_t rounds = 1;          ///< of the sum that takes the most
  std::size_t record_bytes = 0;    ///< of what is known of gradients, for the report
  std::size_t gradient_bytes = 0;  ///< 0 where every address can be reached
};

/// What lies where in the memory that ranks share. Each of them has, on cache lines of its own,
///
///     control block │ a flag for each round of a barrier but the first │ records │ slots for sums │ gradient
///
/// and writes there what the others read. How, is in shared_barriers.hpp.
///
/// Slots. What ranks publish, sums or short gradients, alternates between two slots (for each round of a sum), so that a rank
/// that is ahead does not overwrite what a rank behind still reads: the next sum is between them, over these ranks and perhaps
/// more (or, where some stay behind, others that have met these), or the last barriers of the run, after which all ranks have
/// read all sums. At the next level, groups meet that have added differently often. So a level's first sum has the slot that
/// its number says, odd or even, which the last level did not use, and a third slot is for each second sum of a level.
///
/// Ranks that stay behind at some stage need fewer records and slots than others: so records are found from the beginning,
/// and slots from the gradient backwards.
template <class Memory>
class shared_memory_layout {
  static constexpr std::size_t line = 64;

 public:
  struct alignas(line) control {
    std::atomic<std::uint64_t> step;
    std::atomic<std::uint64_t> failed_run;  // the last
    std::atomic<std::uint64_t> good_run;    // the last
    std::atomic<std::uint64_t> signature;
    std::atomic<std::uint64_t> left;
    std::atomic<std::uint64_t> word;                     // that it says to the others: an address, or anything else
    std::atomic<std::uint64_t> slot_bytes, gradient_at;  // not the same on all ranks
  };
  static_assert(sizeof(control) == line);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared memory needs atomics without locks");

  /// For each round of a barrier (shared_barriers.hpp).
  static constexpr std::size_t slots_per_round = 3;

  /// Bytes of each of so many ranks.
  static std::size_t bytes_for(const shared_sizes& sizes, std::size_t ranks) {
    return gradient_at(sizes, ranks) + sizes.gradient_bytes;
  }

  shared_memory_layout(Memory memory, int rank, const shared_sizes& sizes) : memory_(std::move(memory)) {
    const auto ranks = memory_.ranks();
    size_ = std::size(ranks);
    self_ = static_cast<std::size_t>(std::ranges::find(ranks, rank) - std::ranges::begin(ranks));
    auto& mine = control_of(self_);
    mine.slot_bytes.store(slot_bytes(sizes), std::memory_order_relaxed);
    mine.gradient_at.store(gradient_at(sizes, size_), std::memory_order_relaxed);
    const auto needed = gradient_at(sizes, size_);
    fit_ = own_memory<Memory>::bytes(memory_, needed) >= needed;
  }

  const Memory& memory() const { return memory_; }
  std::size_t self() const { return self_; }
  /// Whether there is as much memory as this rank has asked for; another one may have made it.
  bool fit() const { return fit_; }

  // Of rank ranks()[i]. What depends on its sizes may be asked for once it has published them.

  control& control_of(std::size_t i) const { return *std::launder(reinterpret_cast<control*>(memory_.of(i))); }
  /// The step at which it has begun a certain round. @pre round > 0
  std::atomic<std::uint64_t>& flag_of(std::size_t i, std::size_t round) const {
    auto* const first = std::launder(reinterpret_cast<flag*>(memory_.of(i) + sizeof(control)));
    return first[round - 1].step;
  }
  std::byte* slot_of(std::size_t i, std::size_t number) const {
    return gradient_of(i) - (number + 1) * control_of(i).slot_bytes.load(std::memory_order_relaxed);
  }
  std::byte* records_of(std::size_t i) const { return memory_.of(i) + records_at(size_); }
  std::byte* gradient_of(std::size_t i) const {
    return memory_.of(i) + control_of(i).gradient_at.load(std::memory_order_relaxed);
  }

 private:
  struct alignas(line) flag {
    std::atomic<std::uint64_t> step;
  };

  static constexpr std::size_t in_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }
  static constexpr std::size_t records_at(std::size_t ranks) {
    const auto most_rounds = static_cast<std::size_t>(std::bit_width(ranks - 1));  // of radix 2
    return sizeof(control) + (std::max<std::size_t>(most_rounds, 1) - 1) * sizeof(flag);
  }
  static constexpr std::size_t slot_bytes(const shared_sizes& sizes) { return in_lines(sizes.sums * sizeof(double)); }
  static constexpr std::size_t gradient_at(const shared_sizes& sizes, std::size_t ranks) {
    return records_at(ranks) + in_lines(sizes.record_bytes) + slots_per_round * sizes.rounds * slot_bytes(sizes);
  }

  Memory memory_;
  std::size_t size_ = 0, self_ = 0;
  bool fit_ = true;
};

}  // namespace adasum::detail
