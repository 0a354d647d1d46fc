// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/deferred_error.hpp"
#include "../core/error.hpp"
#include "../core/joined_threads.hpp"
#include "../core/kept_plans.hpp"
#include "../core/message.hpp"
#include "../core/waiting_time.hpp"
#include "../detail/references/own_communicators.hpp"
#include "threads/group.hpp"
#include "threads/memory_block.hpp"
#include "threads/pending.hpp"

namespace adasum {

/// A communicator whose ranks are threads of one process. A message is one copy, from the sender's memory to the
/// receiver's. A rank waits on a condition variable, without spinning.
///
///     adasum::thread_communicator::run(4, [](adasum::thread_communicator comm) { … });
///
/// A rank leaves when its last communicator is destroyed; whoever then waits for it gets a communication_error.
///
/// A default-constructed communicator, and one that was moved from, is empty: it can be copied, assigned to, and tested
/// (`if (comm)`); anything else throws bad_input.
class thread_communicator {
 public:
  /// An empty communicator.
  thread_communicator() = default;

  /// One communicator for each of `size` ranks. @throws bad_input if size < 1
  static std::vector<thread_communicator> group(int size) {
    if (size < 1)
      throw bad_input("adasum::thread_communicator: a group needs at least one rank, not " + std::to_string(size));
    auto shared = std::make_shared<detail::threads::group>(size);
    std::vector<thread_communicator> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back(thread_communicator(std::make_shared<detail::threads::membership>(shared, rank)));
    return ranks;
  }

  /// Runs function(communicator) on `size` threads and waits for them. If ranks throw, rethrows the exception of the
  /// lowest rank whose exception is not a communication_error (those are mostly consequences of another rank's), or else
  /// that of the lowest rank.
  template <class Function>
  static void run(int size, const Function& function) {
    auto ranks = group(size);
    std::vector<std::exception_ptr> thrown(ranks.size());
    {
      detail::joined_threads threads;
      try {
        for (std::size_t r = 0; r < ranks.size(); ++r)
          threads.start([&function, &thrown, r, comm = std::move(ranks[r])]() mutable {
            try {
              function(comm);
            } catch (...) {
              thrown[r] = std::current_exception();
            }
            comm = {};
          });
      } catch (...) {  // the system has no more threads: nobody need wait for the ranks without one
        ranks.clear();
        throw;
      }
    }
    rethrow_cause(thrown);
  }

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return membership_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().rank; }
  /// How many ranks there are.
  int size() const { return get().group->size(); }

  /// Whether a plan is in flight; see the concept communicator_for.
  bool& reduction_in_flight() const { return get().reduction_in_flight; }

  /// From now on, how long this rank waits for others at the most, at each step of a reduction; without a timeout, for
  /// ever. When the time is over, this rank throws a timeout_error and leaves the group: the others need not wait for
  /// it, and it can only destroy its communicator. (test() does not wait, and never gives up.)
  /// @throws bad_input  a timeout that is not positive
  void set_timeout(std::chrono::duration<double> timeout) const {
    auto& mine = get();
    detail::require_timeout(timeout, "adasum::thread_communicator::set_timeout");
    mine.group->set_timeout(mine.rank, timeout);
  }
  /// The timeout that was set; infinite if none was.
  std::chrono::duration<double> timeout ADASUM_NO_MACRO() const { return (get().group->timeout)(get().rank); }

  /// Plans of single calls, destroyed with the last copy of this rank's communicator; see the concept
  /// plan_keeping_communicator.
  adasum::kept_plans* kept_plans() const { return kept_plans_.get(); }
  thread_communicator without_kept_plans() const {
    auto copy = *this;
    copy.kept_plans_.reset();
    return copy;
  }

  /// Memory of this process; see the concept shared_window.
  class memory {
   public:
    static constexpr bool same_address_space = true;
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t index) const { return block_->of(index); }
    /// Bytes of each rank: what the first rank to call share() asked for.
    std::size_t bytes() const { return block_->bytes(); }
    bool has_left(std::size_t index) const { return group_->has_left(index); }
    std::chrono::duration<double> timeout ADASUM_NO_MACRO() const { return (group_->timeout)(rank_); }

   private:
    friend thread_communicator;
    int rank_ = 0;
    std::shared_ptr<detail::threads::group> group_;
    std::shared_ptr<detail::threads::memory_block> block_;
    std::vector<int> ranks_;
  };

  /// Collective: the first rank to call it makes the memory, and all of them share its ownership. Does not block.
  memory share(std::size_t bytes) const {
    auto& mine = get();
    const auto number = mine.shares++;  // whatever becomes of it
    memory shared;
    shared.rank_ = mine.rank;
    shared.group_ = mine.group;
    shared.block_ = mine.group->share(number, bytes);
    shared.ranks_.resize(static_cast<std::size_t>(size()));
    std::iota(shared.ranks_.begin(), shared.ranks_.end(), 0);
    return shared;
  }

  /// An exchange in flight; see the concept pending_exchange. Messages are copied by the receiver's test() and wait().
  class pending {
   public:
    bool test() { return group_ == nullptr || group_->progress(messages_, false, copy_on_host); }
    void wait() {
      if (group_ != nullptr) group_->progress(messages_, true, copy_on_host);
    }

   private:
    friend thread_communicator;
    detail::threads::group* group_ = nullptr;
    detail::threads::pending_messages messages_;
  };

  /// Blocks until every message has been copied. See the concept communicator_for. Between ranks whose spaces are
  /// streams of devices, the receiver's stream copies elements from device memory to device memory, after the sender's
  /// stream has finished.
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    auto& mine = get();
    if constexpr (device_space<Space>) {
      exchange_with_device(space, out, in);
    } else {
      mine.group->post(mine.rank, out, in, mine.blocking);
      mine.group->progress(mine.blocking, true, copy_on_host);
    }
  }

  /// Memory for exchanges of so many messages each way, by exchange() or by post() with this object: see the concept
  /// communicator_for. @throws std::bad_alloc
  void reserve(std::size_t messages, std::size_t) const { get().blocking.reserve(messages); }
  void reserve(std::size_t messages, std::size_t, pending& exchange) const { exchange.messages_.reserve(messages); }

  /// The same without blocking; not for memory of devices. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    const auto& mine = get();
    exchange.group_ = mine.group.get();
    mine.group->post(mine.rank, out, in, exchange.messages_);
  }

 private:
  explicit thread_communicator(std::shared_ptr<detail::threads::membership> m)
      : membership_(std::move(m)), kept_plans_(std::make_shared<adasum::kept_plans>()) {}

  detail::threads::membership& get() const {
    if (!membership_)
      throw bad_input("adasum::thread_communicator: this communicator is empty: it has no ranks to communicate with");
    return *membership_;
  }

  static void copy_on_host(const incoming& message, const std::byte* from) {
    std::memcpy(message.bytes.data(), from, message.bytes.size());
  }

  /// A device that fails must leave no other rank waiting: its elements are withheld, and the failure is reported once
  /// all messages have ended.
  template <class Space>
  void exchange_with_device(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    auto& mine = get();
    detail::deferred_error run;
    const auto sends_elements = [](const outgoing& message) {
      return message.where == memory_kind::space && !message.withheld;
    };
    if (std::ranges::any_of(out, sends_elements)) run([&] { space.fence(); });
    mine.group->post(mine.rank, out, in, mine.blocking, run.failed());
    run.even_after_failure([&] {
      mine.group->progress(mine.blocking, true, [&](const incoming& message, const std::byte* from) {
        if (message.where == memory_kind::host) return copy_on_host(message, from);
        if (message.discarded || run.failed()) return;
        space.transfer(from, message.bytes.data(), message.bytes.size());
        space.fence();
      });
    });
    mine.group->ended().report([&] { run.rethrow(); });  // the fence may have found no memory
  }

  static void rethrow_cause(const std::vector<std::exception_ptr>& thrown) {
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

  std::shared_ptr<detail::threads::membership> membership_;
  std::shared_ptr<adasum::kept_plans> kept_plans_;
};

/// @cond internal
template <>
struct detail::own_memory<thread_communicator::memory> : memory_defaults {
  static std::size_t bytes(const thread_communicator::memory& memory, std::size_t) { return memory.bytes(); }
};
/// @endcond

}  // namespace adasum
