// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "../../core/message.hpp"
#include "../../schedules/sum_order.hpp"
#include "../references/erased.hpp"

/// Small numbers between all ranks, or some. One exchange after another, so that the caller may do something else while one is
/// in flight.
namespace adasum::detail {

/// Makes an exchange. A communicator that throws std::bad_alloc has exchanged nothing (core/concepts.hpp), so it is asked
/// once more: the others wait for these messages, and what was short a moment ago may be there now.
inline void attempt(function_ref<void()> exchange) {
  try {
    exchange();
  } catch (const std::bad_alloc&) {
    exchange();
  }
}

/// Every rank's block to all ranks, for any number of them, in ⌈log₂P⌉ exchanges (Bruck et al., 1997).
class allgather {
 public:
  allgather() = default;
  /// @param mine    this rank's block; it is copied
  /// @param blocks  size × mine.size() bytes: at the end that of rank r, at r × mine.size()
  allgather(std::span<const std::byte> mine, int rank, int size, std::span<std::byte> blocks)
      : self_(static_cast<std::size_t>(rank)),
        count_(static_cast<std::size_t>(size)),
        width_(mine.size()),
        blocks_(blocks) {
    copy_bytes(mine, blocks_.data());  // for now, block i is that of rank (self + i) mod count
  }

  /// Appends the messages of the next exchange. @return whether there is one; otherwise all blocks are there
  template <class Out, class In>
  bool next(Out& out, In& in) {
    if (have_ < count_) {
      const auto have = have_, more = std::min(have, count_ - have);
      have_ *= 2;
      out.push_back({static_cast<int>((self_ + count_ - have) % count_), blocks_.first(more * width_)});
      in.push_back({static_cast<int>((self_ + have) % count_), blocks_.subspan(have * width_, more * width_)});
      return true;
    }
    // clang 14 does not accept std::ranges::rotate of libstdc++ 12.
    std::rotate(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>((count_ - self_) % count_ * width_),
                blocks_.end());
    return false;
  }

 private:
  std::size_t self_ = 0, count_ = 1, width_ = 0, have_ = 1;
  std::span<std::byte> blocks_;
};

/// What a rank knows of itself and others before they set out together: a few bytes, of which none need be allocated,
/// so that a rank that could not set anything up can still say so.
struct setup_vote {
  static constexpr std::int32_t nobody = std::numeric_limits<std::int32_t>::max();
  enum : std::uint32_t {
    differ = 1,          ///< two ranks have different intents
    compares = 2,        ///< a rank wants to know in what they differ
    does_not = 4,        ///< a rank does not
    cannot_compare = 8,  ///< a rank has failed in such a way that it cannot take part in finding out
    runs_differ = 16,    ///< two ranks have counted runs differently
    announces = 32,      ///< a rank does not wait for the others' votes (shared_votes.hpp)
    waits = 64,          ///< a rank does
  };

  std::uint64_t intent = 0;      ///< a hash of what this rank is about to do
  std::int32_t failed = nobody;  ///< the lowest rank that cannot set out
  std::uint32_t flags = 0;
  std::uint64_t bytes = 0;  ///< the most memory that one of the ranks needs to share
  std::uint64_t run = 0;    ///< the number of the run in memory that they share: the highest

  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  bool is_good() const { return failed == nobody && !has(differ) && !(has(compares) && has(does_not)); }

  void learn(const setup_vote& other) {
    flags |= other.flags | (intent == other.intent ? 0u : differ);
    failed = std::min(failed, other.failed);
    bytes = std::max(bytes, other.bytes);
    if (run != other.run) flags |= runs_differ;
    run = std::max(run, other.run);
  }
};

/// A list for exchanges of one message, which allocates nothing.
template <class Message>
class at_most_one {
 public:
  void push_back(const Message& message) {
    message_ = message;
    count_ = 1;
  }
  void clear() { count_ = 0; }
  std::span<const Message> all() const { return {&message_, count_}; }

 private:
  Message message_{};
  std::size_t count_ = 0;
};

/// Every rank's vote to all ranks by messages, merged, in ⌈log₂P⌉ exchanges of one short message each (dissemination: Hensgen,
/// Finkel, Manber, 1988). In the exchange of distance d, rank r learns of the ranks [r + d, r + 2d). If two ranks
/// differ, all find out: a rank that has met no difference knows that the ranks behind it are like itself, and compares
/// them with the first of the next.
class setup_vote_exchange {
 public:
  setup_vote_exchange() = default;
  setup_vote_exchange(const setup_vote& mine, int rank, int size)
      : state_(mine), self_(static_cast<std::size_t>(rank)), count_(static_cast<std::size_t>(size)) {}

  /// Appends the messages of the next exchange. @return whether there is one; otherwise state() is that of all ranks
  template <class Out, class In>
  bool next(Out& out, In& in) {
    if (distance_ > 0) state_.learn(received_);
    distance_ = distance_ > 0 ? 2 * distance_ : 1;
    if (distance_ >= count_) return false;
    sent_ = state_;
    received_ = state_;  // where nothing arrives, nothing is learnt
    out.push_back({static_cast<int>((self_ + count_ - distance_) % count_), std::as_bytes(std::span(&sent_, 1))});
    in.push_back({static_cast<int>((self_ + distance_) % count_), std::as_writable_bytes(std::span(&received_, 1))});
    return true;
  }

  /// A message did not come as it should: what is in its buffer may be anything.
  void fail() {
    received_ = state_;
    state_.failed = std::min(state_.failed, static_cast<std::int32_t>(self_));
    state_.flags |= setup_vote::cannot_compare;
  }
  const setup_vote& state() const { return state_; }

 private:
  setup_vote state_, sent_, received_;
  std::size_t self_ = 0, count_ = 1, distance_ = 0;
};

/// Adds `values` over a group of ranks, in place, with the same bits on each of them (schedules/sum_order.hpp).
class small_allreduce {
 public:
  small_allreduce() = default;
  /// @param group  the ranks, in one order on all of them
  /// @param self   this rank's place in the group
  /// @param radix  see sum_radix; the same on all of them
  /// @param scratch  sum_order::most_received(group.size(), radix) times as many doubles as values
  small_allreduce(std::span<const int> group, std::size_t self, std::size_t radix, std::span<double> values,
                  std::span<double> scratch)
      : order_(group.size(), self, radix), group_(group), values_(values), scratch_(scratch) {}

  /// Adds what the last exchange brought, and appends the messages of the next one: none where only others have some.
  /// @return whether there is a next one; otherwise `values` holds the sum
  bool next(std::vector<outgoing>& out, std::vector<incoming>& in) {
    if (parts_received_ > 0) add_received();
    if (exchange_ == order_.exchanges()) return false;
    own_part_ = order_.visit(
        exchange_++,
        [&](std::size_t to) {
          out.push_back({group_[to], std::as_bytes(values_)});
        },
        [&](std::size_t from) {
          in.push_back({group_[from], std::as_writable_bytes(received(parts_received_++))});
        });
    return true;
  }

 private:
  std::span<double> received(std::size_t i) const { return scratch_.subspan(i * values_.size(), values_.size()); }

  /// In the order of the parts, this rank's own among them.
  void add_received() {
    const auto others = std::exchange(parts_received_, 0);
    const auto count = values_.size();
    for (std::size_t x = 0; x < count; ++x) {
      const double* const part = scratch_.data() + x;
      double sum = 0;
      for (std::size_t i = 0; i < own_part_; ++i) sum += part[i * count];
      sum += values_[x];
      for (std::size_t i = own_part_; i < others; ++i) sum += part[i * count];
      values_[x] = sum;
    }
  }

  sum_order order_;
  std::span<const int> group_;
  std::span<double> values_, scratch_;
  std::size_t exchange_ = 0;        // the next one
  std::size_t parts_received_ = 0;  // by the last one
  std::size_t own_part_ = 0;        // how many of these come before this rank's own
};

}  // namespace adasum::detail
