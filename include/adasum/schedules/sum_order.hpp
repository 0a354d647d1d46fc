// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <cstddef>
#include <span>

#include "../core/segments.hpp"

/// Which ranks exchange their numbers, and when, so that the sum of a few numbers over a group of ranks has the same bits
/// on each of them.
namespace adasum::detail {

/// How many ranks' numbers one exchange of a sum adds. The numbers are the inner products of `vectors` vectors: n(n + 1)/2
/// doubles for each segment.
///
/// An exchange of radix q takes the latency λ and q - 1 messages of μ(bytes) each, and does the work of log₂q
/// doublings. In schedules::machine, λ is 1 µs, and μ is 0.2 µs plus 0.08 ns for each byte. 4 in place of 2 · 2 pays
/// while μ < λ, up to 10 KB. 8 in place of 4 · 2 pays while 3μ < λ, and 8 · 8 costs what 4 · 4 · 4 does where 5μ = λ,
/// so that very short messages go wider still; 16 in place of 4 · 4 would cost more.
///
/// That is for one segment. With many, a smaller radix can cost less, up to a fifth of the sum's time for 1,000 segments.
/// But then only ranks with the same number of segments would exchange the same messages, and a rank whose segments are
/// wrong could not tell the others that it fails.
constexpr std::size_t sum_radix(std::size_t vectors) { return vectors <= 10 ? 8 : vectors <= 44 ? 4 : 2; }

/// A rank's place in its group. @pre it is there
constexpr std::size_t place_of(int rank, std::span<const int> group) {
  std::size_t place = 0;
  while (group[place] != rank) ++place;
  return place;
}

/// A sum over a group, as one of its ranks sees it; places are positions in the group.
///
/// The group is cut into as many nearly equal parts as the radix says, each part in the same way, down to single ranks;
/// sizes within one level differ by at most one. On the way back, all ranks of a part hold the same sum. Each gets the
/// sum of every other part from one of that part's ranks, and adds them in the order of the parts. So any number of ranks
/// takes ⌈log P⌉ exchanges, with the radix as the base of the logarithm, and a rank sends at most two messages to a
/// part.
class sum_order {
 public:
  sum_order() = default;
  /// @param ranks  of the group, at least one
  /// @param radix  the most parts, at least 2
  constexpr sum_order(std::size_t ranks, std::size_t self, std::size_t radix)
      : ranks_(ranks), self_(self), widest_(radix) {
    for (std::size_t reached = 1; reached < ranks; reached *= widest_) ++exchanges_;
  }

  constexpr std::size_t exchanges() const { return exchanges_; }

  /// Calls, for the exchange of the given number, send(place) for each rank that gets this one's sum, and
  /// receive(place) for one rank of each other part, in the order of the parts.
  /// @return how many of those parts come before this rank's own
  template <class Send, class Receive>
  constexpr std::size_t visit(std::size_t exchange, Send&& send, Receive&& receive) const {
    const auto [whole, parts] = cut_at(exchange);
    const auto own = part_of_self(whole, parts);
    const auto mine = part(whole, parts, own);
    const auto index = self_ - mine.begin;
    std::size_t before = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      const auto other = part(whole, parts, i);
      if (i == own || other.empty()) continue;
      before += i < own;
      for (auto theirs = index; theirs < other.size(); theirs += mine.size()) send(other.begin + theirs);
      receive(other.begin + index % other.size());
    }
    return before;
  }

  /// The most ranks that a rank hears from in one exchange.
  static constexpr std::size_t most_received(std::size_t ranks, std::size_t radix) {
    return (radix < ranks ? radix : ranks) - 1;
  }
  /// The most messages that a rank sends in one exchange, whatever the radix.
  static constexpr std::size_t most_messages = 2 * (sum_radix(2) - 1);

 private:
  /// Some ranks, and into how many parts they are cut.
  struct cut {
    index_range whole;
    std::size_t parts;
  };
  /// Those of which the exchange of this number adds the parts.
  constexpr cut cut_at(std::size_t exchange) const {
    index_range whole{0, ranks_};
    std::size_t largest = ranks_, level = exchanges_ - 1;
    auto parts = radix(largest, level + 1);
    for (; level > exchange; --level) {
      whole = part(whole, parts, part_of_self(whole, parts));
      largest = (largest + parts - 1) / parts;
      parts = radix(largest, level);
    }
    return {whole, parts};
  }
  /// The radix of this level: as even as possible across the levels that are left and, where there is one, a divisor of
  /// the number of ranks, so that parts have one size and no rank sends to a part twice.
  constexpr std::size_t radix(std::size_t ranks, std::size_t levels) const {
    const auto reached = [&](std::size_t radix) {
      std::size_t power = 1;
      for (std::size_t level = 0; level < levels; ++level) power *= radix;
      return power;
    };
    std::size_t least = 2;
    while (reached(least) < ranks) ++least;
    for (auto radix = least; radix <= widest_; ++radix)
      if (ranks % radix == 0) return radix;
    return least;
  }
  static constexpr index_range part(index_range whole, std::size_t parts, std::size_t i) {
    return {whole.begin + whole.size() * i / parts, whole.begin + whole.size() * (i + 1) / parts};
  }
  constexpr std::size_t part_of_self(index_range whole, std::size_t parts) const {
    return (parts * (self_ - whole.begin + 1) - 1) / whole.size();
  }

  std::size_t ranks_ = 1, self_ = 0, widest_ = 2, exchanges_ = 0;
};

}  // namespace adasum::detail
