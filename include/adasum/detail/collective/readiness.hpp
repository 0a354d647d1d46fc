// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "../../core/message.hpp"

namespace adasum::detail {

/// What a rank knows of itself and others before they set out together: a few bytes, of which none need be allocated,
/// so that a rank that could not set anything up can still say so.
struct readiness {
  static constexpr std::int32_t nobody = std::numeric_limits<std::int32_t>::max();
  enum : std::uint32_t {
    differ = 1,          ///< two ranks have different intents
    compares = 2,        ///< a rank wants to know in what they differ
    does_not = 4,        ///< a rank does not
    cannot_compare = 8,  ///< a rank has failed in such a way that it cannot take part in finding out
  };

  std::uint64_t intent = 0;      ///< a hash of what this rank is about to do
  std::int32_t failed = nobody;  ///< the lowest rank that cannot set out
  std::uint32_t flags = 0;
  std::uint64_t bytes = 0;  ///< the most memory that one of the ranks needs to share

  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  bool is_good() const { return failed == nobody && !has(differ) && !(has(compares) && has(does_not)); }

  void learn(const readiness& other) {
    flags |= other.flags | (intent == other.intent ? 0u : differ);
    failed = std::min(failed, other.failed);
    bytes = std::max(bytes, other.bytes);
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

/// Every rank's readiness to all ranks, merged, in ⌈log₂P⌉ exchanges of one short message each (dissemination: Hensgen,
/// Finkel, Manber, 1988). In the exchange of distance d, rank r learns of the ranks [r + d, r + 2d). If two ranks
/// differ, all find out: a rank that has met no difference knows that the ranks behind it are like itself, and compares
/// them with the first of the next.
class readiness_exchange {
 public:
  readiness_exchange() = default;
  readiness_exchange(const readiness& mine, int rank, int size)
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
    state_.flags |= readiness::cannot_compare;
  }
  const readiness& state() const { return state_; }

 private:
  readiness state_, sent_, received_;
  std::size_t self_ = 0, count_ = 1, distance_ = 0;
};

}  // namespace adasum::detail
