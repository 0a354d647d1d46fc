// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../core/attempt.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"

namespace adasum {

/// A communicator whose ranks are threads of one process. A message is one copy, from the sender's memory to the
/// receiver's. A rank waits on a condition variable, without spinning.
///
///     adasum::thread_communicator::run(4, [](adasum::thread_communicator comm) { … });
///
/// A rank leaves when its last handle is destroyed; whoever then waits for it gets a communication_error.
class thread_communicator {
  /// Zeroed memory, the same number of bytes for each rank, on cache lines of their own.
  class block {
   public:
    block(std::size_t ranks, std::size_t bytes) : stride_((bytes + 63) / 64 * 64), lines_(ranks * stride_ / 64) {}
    std::byte* at(std::size_t place) { return lines_.data()->bytes + place * stride_; }
    std::size_t bytes() const { return stride_; }

   private:
    struct alignas(64) line {
      std::byte bytes[64];
    };
    std::size_t stride_;
    std::vector<line> lines_;
  };
  /// A message that waits for its receiver. It belongs to the sender, which waits until it is taken.
  struct posted {
    int peer;
    std::span<const std::byte> bytes;
    posted* next = nullptr;
    bool taken = false;
  };
  struct shared_state;

 public:
  /// One communicator for each of `size` ranks. @throws bad_input if size < 1
  static std::vector<thread_communicator> group(int size) {
    if (size < 1) throw bad_input("adasum::thread_communicator: a group of " + std::to_string(size) + " ranks");
    auto state = std::make_shared<shared_state>(size);
    std::vector<thread_communicator> ranks;
    for (int r = 0; r < size; ++r) ranks.push_back(thread_communicator(std::make_shared<membership>(state, r)));
    return ranks;
  }

  /// Runs function(communicator) on `size` threads and waits for them. If ranks throw, rethrows what the one with the
  /// lowest number threw that was not merely a consequence (a communication_error), if there is such a one.
  template <class Function>
  static void run(int size, const Function& function) {
    auto ranks = group(size);
    std::vector<std::exception_ptr> thrown(ranks.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < ranks.size(); ++r)
        threads.emplace_back([&function, &thrown, r, comm = std::move(ranks[r])]() mutable {
          try {
            function(comm);
          } catch (...) {
            thrown[r] = std::current_exception();
          }
          comm.membership_.reset();
        });
    }
    rethrow(thrown);
  }

  int rank() const { return membership_->rank; }
  int size() const { return static_cast<int>(membership_->group->ranks.size()); }

  /// Memory of this process; see the concept shared_memory.
  class memory {
   public:
    static constexpr bool every_address = true;
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t place) const { return block_->at(place); }
    /// Of each rank: as many as the first to come asked for.
    std::size_t bytes() const { return block_->bytes(); }
    bool has_left(std::size_t place) const {
      const std::scoped_lock lock(group_->mutex);
      return group_->ranks[place].left;
    }

   private:
    friend thread_communicator;
    std::shared_ptr<shared_state> group_;
    std::shared_ptr<block> block_;
    std::vector<int> ranks_;
  };

  /// Collective: the first rank to come makes the memory, all of them hold it. Does not block.
  memory share(std::size_t bytes) const {
    memory shared;
    shared.group_ = membership_->group;
    shared.block_ = membership_->group->share(membership_->shares++, bytes);
    shared.ranks_.resize(static_cast<std::size_t>(size()));
    std::iota(shared.ranks_.begin(), shared.ranks_.end(), 0);
    return shared;
  }

  /// An exchange in flight; see the concept pending_exchange. Messages are copied by the receiver's test() and wait().
  class pending {
   public:
    bool test() { return group_->progress(*this, false, copy_on_host); }
    void wait() { group_->progress(*this, true, copy_on_host); }

   private:
    friend thread_communicator;
    shared_state* group_ = nullptr;
    int self_ = 0;
    // Kept from one exchange to the next, so that none allocates once they have grown to its size.
    std::vector<posted> sent_;
    std::vector<incoming> rooms_;
    std::size_t received_ = 0, taken_ = 0;  // how many have been
    std::string problem_;
  };

  /// Blocks until every message has been copied. See the concept communicator_for. Between ranks whose spaces are
  /// streams of devices, elements are copied from device memory to device memory, by the receiver's stream, once the
  /// sender's is done.
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    auto& group = *membership_->group;
    auto& mine = membership_->blocking;
    if constexpr (device_space<Space>) {
      // A device that fails must leave no peer waiting: its elements are withheld, and the failure reported in the end.
      detail::attempt run;
      const auto sends_elements = [](const outgoing& message) {
        return message.where == residence::space && !message.withheld;
      };
      if (std::ranges::any_of(out, sends_elements)) run([&] { space.fence(); });
      group.post(rank(), out, in, mine, run.failed());
      run.even_after_failure([&] {
        group.progress(mine, true, [&](const incoming& room, const std::byte* from) {
          if (room.where == residence::host) return copy_on_host(room, from);
          if (room.discarded || run.failed()) return;
          space.transfer(from, room.bytes.data(), room.bytes.size());
          space.fence();
        });
      });
      run.rethrow();
    } else {
      group.post(rank(), out, in, mine);
      mine.wait();
    }
  }

  /// The same without blocking; not for memory of devices. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    membership_->group->post(rank(), out, in, exchange);
  }

 private:
  static void copy_on_host(const incoming& room, const std::byte* from) {
    std::memcpy(room.bytes.data(), from, room.bytes.size());
  }

  /// Messages from one rank to another, in the order of sending. Linked, so that sending allocates nothing.
  struct message_queue {
    posted* first = nullptr;
    posted* last = nullptr;

    void push(posted* message) {
      (first ? last->next : first) = message;
      last = message;
    }
    posted* pop() { return std::exchange(first, first->next); }
    void clear() { first = nullptr; }
  };

  struct rank_state {
    std::condition_variable changed;   // something happened that this rank may wait for
    std::vector<message_queue> inbox;  // one for each sender
    bool left = false;
  };

  struct shared_state {
    explicit shared_state(int size) : ranks(static_cast<std::size_t>(size)) {
      for (auto& rank : ranks) rank.inbox.resize(ranks.size());
    }

    /// @param no_elements  withhold what lies in memory of the space
    void post(int self, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange,
              bool no_elements = false) {
      exchange.group_ = this;
      exchange.self_ = self;
      exchange.received_ = exchange.taken_ = 0;
      exchange.problem_.clear();
      exchange.rooms_.assign(in.begin(), in.end());
      exchange.sent_.clear();
      for (const auto& message : out)
        exchange.sent_.push_back({message.peer, message.withheld || (no_elements && message.where == residence::space)
                                                    ? message.bytes.first(0)
                                                    : message.bytes});
      const std::scoped_lock lock(mutex);
      for (auto& message : exchange.sent_) {
        at(message.peer).inbox[index(self)].push(&message);
        at(message.peer).changed.notify_one();
      }
    }

    /// Takes the messages that are there, and waits for the others if it may. @return whether the exchange has ended
    /// @param copy  copy(room, from): called for each message, without the lock
    template <class Copy>
    bool progress(pending& exchange, bool may_wait, Copy&& copy) {
      auto& me = at(exchange.self_);
      auto& problem = exchange.problem_;
      std::unique_lock lock(mutex);
      const auto reached = [&](auto condition) {
        if (may_wait) me.changed.wait(lock, condition);
        return may_wait || condition();
      };
      for (; exchange.received_ < exchange.rooms_.size(); ++exchange.received_) {
        const auto& room = exchange.rooms_[exchange.received_];
        auto& queue = me.inbox[index(room.peer)];
        if (!reached([&] { return queue.first || at(room.peer).left; })) return false;
        if (!queue.first) {
          problem = "rank " + std::to_string(room.peer) + " has left";
          continue;
        }
        posted& message = *queue.pop();
        if (message.bytes.size() == room.bytes.size()) {
          lock.unlock();
          try {
            if (!room.bytes.empty()) copy(room, message.bytes.data());
          } catch (const std::exception& failed) {
            problem = failed.what();
          }
          lock.lock();
        } else {
          problem = "rank " + std::to_string(room.peer) + " sent " + std::to_string(message.bytes.size()) +
                    " bytes where " + std::to_string(room.bytes.size()) + " were expected";
        }
        message.taken = true;
        at(room.peer).changed.notify_one();
      }
      for (; exchange.taken_ < exchange.sent_.size(); ++exchange.taken_) {
        const auto& message = exchange.sent_[exchange.taken_];
        auto& peer = at(message.peer);
        if (!reached([&] { return message.taken || peer.left; })) return false;
        if (message.taken) continue;
        peer.inbox[index(exchange.self_)].clear();
        problem = "rank " + std::to_string(message.peer) + " has left";
      }
      lock.unlock();
      if (!problem.empty())
        throw communication_error("adasum::thread_communicator: rank " + std::to_string(exchange.self_) + ": " +
                                  problem);
      return true;
    }

    /// The block that the ranks make with their number'th call.
    std::shared_ptr<block> share(std::size_t number, std::size_t bytes) {
      const std::scoped_lock lock(mutex);
      auto& [shared, callers] = blocks[number];
      if (!shared) shared = std::make_shared<block>(ranks.size(), bytes);
      const auto mine = shared;
      if (++callers == ranks.size()) blocks.erase(number);
      return mine;
    }

    void leave(int rank) {
      const std::scoped_lock lock(mutex);
      at(rank).left = true;
      for (auto& other : ranks) other.changed.notify_one();
    }

    static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
    rank_state& at(int rank) { return ranks[index(rank)]; }

    std::mutex mutex;
    std::vector<rank_state> ranks;
    std::map<std::size_t, std::pair<std::shared_ptr<block>, std::size_t>> blocks;  // being made, and how many hold it
  };

  struct membership {
    membership(std::shared_ptr<shared_state> state, int r) : group(std::move(state)), rank(r) {}
    membership(const membership&) = delete;
    membership& operator=(const membership&) = delete;
    ~membership() { group->leave(rank); }

    std::shared_ptr<shared_state> group;
    int rank;
    std::size_t shares = 0;  // calls of share()
    pending blocking;        // the exchange of exchange(), kept for its memory
  };

  explicit thread_communicator(std::shared_ptr<membership> m) : membership_(std::move(m)) {}

  static void rethrow(const std::vector<std::exception_ptr>& thrown) {
    std::exception_ptr consequence;
    for (const auto& e : thrown) {
      if (!e) continue;
      try {
        std::rethrow_exception(e);
      } catch (const communication_error&) {
        if (!consequence) consequence = e;
      } catch (...) {
        throw;
      }
    }
    if (consequence) std::rethrow_exception(consequence);
  }

  std::shared_ptr<membership> membership_;
};

}  // namespace adasum
