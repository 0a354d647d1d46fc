// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "../../core/waiting.hpp"
#include "../../detail/references/erased.hpp"
#include "mailbox.hpp"

namespace adasum::detail::threads {

/// Zeroed memory, the same number of bytes for each rank, on cache lines of their own.
class memory_block {
 public:
  memory_block(std::size_t ranks, std::size_t bytes)
      : stride_((bytes + sizeof(line) - 1) / sizeof(line) * sizeof(line)),
        lines_(std::max<std::size_t>(ranks * stride_ / sizeof(line), 1)) {}
  std::byte* of(std::size_t rank) { return reinterpret_cast<std::byte*>(lines_.data()) + rank * stride_; }
  /// Of each rank.
  std::size_t bytes() const { return stride_; }

 private:
  struct alignas(64) line {
    std::byte bytes[64];
  };
  std::size_t stride_;
  std::vector<line> lines_;
};

/// What the ranks of one thread_communicator have in common: a mailbox for each, and the memory that they share.
class group {
 public:
  using copy_function = function_ref<void(const incoming& message, const std::byte* from)>;

  explicit group(int size) : mailboxes_(index(size)) {
    for (auto& box : mailboxes_) box.queues.resize(mailboxes_.size());
  }

  int size() const { return static_cast<int>(mailboxes_.size()); }
  const ended_exchange& ended() const { return ended_; }

  /// @param withhold_elements  send nothing of what lies in memory of the space
  /// @throws std::bad_alloc     nothing has been sent
  /// @throws timeout_error      this rank has given up waiting for another before; nothing has been sent
  void post(int rank, std::span<const outgoing> out, std::span<const incoming> in, pending_messages& exchange,
            bool withhold_elements = false) {
    exchange.reserve(std::max(out.size(), in.size()));
    exchange.rank = rank;
    exchange.received = exchange.taken = 0;
    exchange.problem = {};
    exchange.expected.assign(in.begin(), in.end());
    exchange.sent.clear();
    for (const auto& message : out) {
      const bool withheld = message.withheld || (withhold_elements && message.where == memory_kind::space);
      exchange.sent.push_back({message.peer, message.bytes.first(withheld ? 0 : message.bytes.size())});
    }
    const std::scoped_lock lock(mutex_);
    require_not_given_up(rank);
    for (auto& message : exchange.sent) {
      of(message.peer).queues[index(rank)].push(&message);
      of(message.peer).changed.notify_one();
    }
  }

  /// Takes the messages that are there, and if `may_wait` waits for the others. @return whether the exchange has ended
  /// @param copy  copy(message, from): called for each message, without the lock
  /// @throws communication_error  once the exchange has ended
  bool progress(pending_messages& exchange, bool may_wait, copy_function copy) {
    {
      std::unique_lock lock(mutex_);
      if (!receive(exchange, may_wait, lock, copy) || !wait_until_taken(exchange, may_wait, lock)) return false;
    }
    const auto& problem = exchange.problem;
    if (problem.what != exchange_problem::nothing)
      ended_.report([&] {
        const auto text = "adasum::thread_communicator: rank " + std::to_string(exchange.rank) + ": " + problem.text();
        if (problem.what == exchange_problem::late) throw timeout_error(text, problem.peer);
        throw communication_error(text);
      });
    return true;
  }

  /// The memory that the ranks make with their number'th call: by the first to come, for all.
  std::shared_ptr<memory_block> share(std::size_t number, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    std::size_t at = 0;
    while (at < blocks_.size() && blocks_[at].number != number) ++at;
    if (at == blocks_.size()) blocks_.push_back({number, std::make_shared<memory_block>(mailboxes_.size(), bytes)});
    auto shared = blocks_[at].memory;
    if (++blocks_[at].callers == mailboxes_.size()) {
      blocks_[at] = std::move(blocks_.back());
      blocks_.pop_back();
    }
    return shared;
  }

  /// Whoever waits for this rank no longer does.
  void leave(int rank) {
    const std::scoped_lock lock(mutex_);
    leave_locked(rank);
  }
  void set_timeout(int rank, std::chrono::duration<double> timeout) {
    const std::scoped_lock lock(mutex_);
    of(rank).owners_timeout = timeout;
  }
  bool has_left(std::size_t rank) {
    const std::scoped_lock lock(mutex_);
    return mailboxes_[rank].owner_has_left;
  }

 private:
  struct shared_block {
    std::size_t number;
    std::shared_ptr<memory_block> memory;
    std::size_t callers = 0;  // ranks that have it
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  mailbox& of(int rank) { return mailboxes_[index(rank)]; }

  /// Whether the condition holds, now or after waiting; or, after the timeout, whether this rank has left, which
  /// has_given_up() tells.
  bool reached(pending_messages& exchange, int peer, bool may_wait, std::unique_lock<std::mutex>& lock,
               function_ref<bool()> condition) {
    if (!may_wait) return condition();
    auto& mine = of(exchange.rank);
    if (!is_limited(mine.owners_timeout) || has_given_up(exchange)) {
      mine.changed.wait(lock, condition);
    } else {
      constexpr std::chrono::duration<double> most = std::chrono::hours(24 * 365);  // what clocks can count
      const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(mine.owners_timeout, most));
      if (!mine.changed.wait_for(lock, time, condition)) give_up(exchange, peer);
    }
    return true;
  }

  /// The others need not wait for this rank. What it has sent and nobody has begun to take, goes with the exchange.
  void give_up(pending_messages& exchange, int peer) {
    auto& mine = of(exchange.rank);
    exchange.problem = {.what = exchange_problem::late, .peer = peer, .timeout = mine.owners_timeout};
    mine.owner_gave_up_on = peer;
    leave_locked(exchange.rank);
    for (auto& message : exchange.sent) {
      auto& queue = of(message.peer).queues[index(exchange.rank)];
      if (!queue.contains(&message)) continue;
      for (auto& other : exchange.sent) other.taken = other.taken || queue.contains(&other);
      queue.clear();
    }
  }
  static bool has_given_up(const pending_messages& exchange) { return exchange.problem.what == exchange_problem::late; }
  /// What is wrong with a rank that has left.
  exchange_problem departure_of(int peer) {
    const int late = of(peer).owner_gave_up_on;
    return {.what = late < 0 ? exchange_problem::has_left : exchange_problem::gave_up, .peer = peer, .for_rank = late};
  }
  void leave_locked(int rank) {
    of(rank).owner_has_left = true;
    for (auto& box : mailboxes_) box.changed.notify_one();
  }
  void require_not_given_up(int rank) {
    const int late = of(rank).owner_gave_up_on;
    if (late < 0) return;
    throw timeout_error({"adasum::thread_communicator: rank ", rank,
                         " cannot use this communicator any more: it has waited in vain for rank ", late, " before"},
                        late);
  }

  bool receive(pending_messages& exchange, bool may_wait, std::unique_lock<std::mutex>& lock, copy_function copy) {
    for (; exchange.received < exchange.expected.size(); ++exchange.received) {
      const auto& expected = exchange.expected[exchange.received];
      auto& queue = of(exchange.rank).queues[index(expected.peer)];
      const auto& sender = of(expected.peer);
      const auto has_come = [&] { return !queue.empty() || sender.owner_has_left; };
      if (!reached(exchange, expected.peer, may_wait, lock, has_come)) return false;
      if (has_given_up(exchange)) return true;
      if (queue.empty()) {
        exchange.problem = departure_of(expected.peer);
        continue;
      }
      posted_message& message = *queue.pop();
      lock.unlock();
      take(exchange, expected, message.bytes, copy);
      lock.lock();
      message.taken = true;
      of(expected.peer).changed.notify_one();
    }
    return true;
  }

  static void take(pending_messages& exchange, const incoming& expected, std::span<const std::byte> bytes,
                   copy_function copy) {
    if (bytes.size() != expected.bytes.size()) {
      exchange.problem = {exchange_problem::other_size, expected.peer, bytes.size(), expected.bytes.size()};
      return;
    }
    try {
      if (!bytes.empty()) copy(expected, bytes.data());
    } catch (...) {
      exchange.problem = {exchange_problem::not_copied, expected.peer, 0, 0, std::current_exception()};
    }
  }

  bool wait_until_taken(pending_messages& exchange, bool may_wait, std::unique_lock<std::mutex>& lock) {
    for (; exchange.taken < exchange.sent.size(); ++exchange.taken) {
      const auto& message = exchange.sent[exchange.taken];
      auto& receiver = of(message.peer);
      const auto has_gone = [&] { return message.taken || receiver.owner_has_left; };
      if (!reached(exchange, message.peer, may_wait, lock, has_gone)) return false;
      if (has_given_up(exchange)) reached(exchange, message.peer, true, lock, has_gone);  // it is being copied just now
      if (message.taken) continue;
      receiver.queues[index(exchange.rank)].clear();  // these messages go with the exchange
      if (!has_given_up(exchange)) exchange.problem = departure_of(message.peer);
    }
    return true;
  }

  ended_exchange ended_;
  std::mutex mutex_;
  std::vector<mailbox> mailboxes_;
  std::vector<shared_block> blocks_;  // those that some ranks do not have yet
};

/// One rank of a group. It leaves the group when this object is destroyed.
struct membership {
  membership(std::shared_ptr<threads::group> of, int r) : group(std::move(of)), rank(r) {
    blocking.reserve(
        std::max<std::size_t>(64, 4 * static_cast<std::size_t>(group->size())));  // as much as a stage sends
  }
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;
  ~membership() {
    state.plans().clear();  // first, so that they are there as long as others wait for this rank
    group->leave(rank);
  }

  std::shared_ptr<threads::group> group;
  int rank;
  communicator_state state;
  std::size_t shares = 0;     // how often share() has been called
  pending_messages blocking;  // the messages of exchange(), kept for their memory
};

}  // namespace adasum::detail::threads
