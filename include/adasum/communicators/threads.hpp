// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../core/communicator_state.hpp"
#include "../core/concepts.hpp"
#include "../core/message.hpp"
#include "../detail/references/erased.hpp"
#include "../detail/references/shared_window_ref.hpp"

namespace adasum {

namespace detail::threads {
struct membership;
struct pending_messages;
}  // namespace detail::threads

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
  static std::vector<thread_communicator> group(int size);

  /// Runs function(communicator) on `size` threads and waits for them. If ranks throw, rethrows the exception of the
  /// lowest rank whose exception is not a communication_error (those are mostly consequences of another rank's), or else
  /// that of the lowest rank.
  template <class Function>
  static void run(int size, const Function& function) {
    run_ranks(size, [&](thread_communicator& comm) { function(comm); });
  }

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return membership_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const;
  /// How many ranks there are.
  int size() const;

  /// With plans of single calls, destroyed with the last copy of this rank's communicator; see the concept communicator_for.
  communicator_state& state() const;

  /// From now on, how long this rank waits for others at the most, at each step of a reduction; without a timeout, for
  /// ever. When the time is over, this rank throws a timeout_error and leaves the group: the others need not wait for
  /// it, and it can only destroy its communicator. (test() does not wait, and never gives up.)
  /// @throws bad_input  a timeout that is not positive
  void set_timeout(std::chrono::duration<double> timeout) const;
  /// The timeout that was set; infinite if none was.
  std::chrono::duration<double> timeout ADASUM_NO_MACRO() const;

  /// Memory of this process; see the concept shared_window.
  class memory {
   public:
    static constexpr bool same_address_space = true;
    std::span<const int> ranks() const { return ranks_; }
    std::byte* of(std::size_t index) const;
    /// Bytes of each rank: what the first rank to call share() asked for.
    std::size_t bytes() const;
    bool has_left(std::size_t index) const;

   private:
    friend thread_communicator;
    struct block;
    std::shared_ptr<const block> block_;
    std::vector<int> ranks_;
  };

  /// Collective: the first rank to call it makes the memory, and all of them share its ownership. Does not block.
  memory share(std::size_t bytes) const;

  /// An exchange in flight; see the concept pending_exchange. Messages are copied by the receiver's test() and wait().
  class pending {
   public:
    bool test();
    void wait();

   private:
    friend thread_communicator;
    detail::threads::pending_messages& messages();
    detail::owned_object messages_ = detail::no_object();  // until it is used first
  };

  /// Blocks until every message has been copied. See the concept communicator_for. Between ranks whose spaces are
  /// streams of devices, the receiver's stream copies elements from device memory to device memory, after the sender's
  /// stream has finished.
  template <class Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    if constexpr (device_space<Space>) {
      const auto fence = [&] { space.fence(); };
      exchange_with_device(out, in, fence, [&](const std::byte* from, std::byte* to, std::size_t bytes) {
        space.transfer(from, to, bytes);
        space.fence();
      });
    } else {
      exchange_on_host(out, in);
    }
  }

  /// Memory for exchanges of so many messages each way, by exchange() or by post() with this object: see the concept
  /// communicator_for. @throws std::bad_alloc
  void reserve(std::size_t messages, std::size_t) const;
  void reserve(std::size_t messages, std::size_t, pending& exchange) const;

  /// The same without blocking; not for memory of devices. See the concept posting_communicator.
  template <class Space>
    requires(!device_space<Space>)
  void post(const Space&, std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const {
    post_on_host(out, in, exchange);
  }

 private:
  explicit thread_communicator(std::shared_ptr<detail::threads::membership> m) : membership_(std::move(m)) {}

  static void run_ranks(int size, detail::function_ref<void(thread_communicator&)> function);
  detail::threads::membership& get() const;
  void exchange_on_host(std::span<const outgoing> out, std::span<const incoming> in) const;
  void post_on_host(std::span<const outgoing> out, std::span<const incoming> in, pending& exchange) const;
  /// @param fence     waits for the device
  /// @param transfer  copies bytes from memory of the sender's device, and waits for them
  void exchange_with_device(
      std::span<const outgoing> out, std::span<const incoming> in, detail::function_ref<void()> fence,
      detail::function_ref<void(const std::byte* from, std::byte* to, std::size_t bytes)> transfer) const;

  std::shared_ptr<detail::threads::membership> membership_;
};

/// @cond internal
template <>
struct detail::own_memory<thread_communicator::memory> : memory_defaults {
  static std::size_t bytes(const thread_communicator::memory& memory, std::size_t) { return memory.bytes(); }
};
/// @endcond

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <cstring>
#include <exception>
#include <numeric>

#include "../core/error.hpp"
#include "../core/joined_threads.hpp"
#include "../core/waiting.hpp"
#include "threads/group.hpp"
#include "threads/mailbox.hpp"

namespace adasum {

namespace detail::threads {

inline void rethrow_cause(const std::vector<std::exception_ptr>& thrown) {
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

inline constexpr auto copy_on_host = [](const incoming& message, const std::byte* from) {
  std::memcpy(message.bytes.data(), from, message.bytes.size());
};

}  // namespace detail::threads

ADASUM_INLINE std::vector<thread_communicator> thread_communicator::group(int size) {
  if (size < 1) throw bad_input({"adasum::thread_communicator: a group needs at least one rank, not ", size});
  auto shared = std::make_shared<detail::threads::group>(size);
  std::vector<thread_communicator> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(thread_communicator(std::make_shared<detail::threads::membership>(shared, rank)));
  return ranks;
}

ADASUM_INLINE void thread_communicator::run_ranks(int size, detail::function_ref<void(thread_communicator&)> function) {
  auto ranks = group(size);
  std::vector<std::exception_ptr> thrown(ranks.size());
  {
    detail::joined_threads threads;
    try {
      for (std::size_t r = 0; r < ranks.size(); ++r)
        threads.start([function, &thrown, r, comm = std::move(ranks[r])]() mutable {
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
  detail::threads::rethrow_cause(thrown);
}

ADASUM_INLINE detail::threads::membership& thread_communicator::get() const {
  if (!membership_)
    throw bad_input("adasum::thread_communicator: this communicator is empty: it has no ranks to communicate with");
  return *membership_;
}

ADASUM_INLINE int thread_communicator::rank() const { return get().rank; }
ADASUM_INLINE int thread_communicator::size() const { return get().group->size(); }
ADASUM_INLINE communicator_state& thread_communicator::state() const { return get().state; }

ADASUM_INLINE void thread_communicator::set_timeout(std::chrono::duration<double> timeout) const {
  auto& mine = get();
  detail::require_timeout(timeout, "adasum::thread_communicator::set_timeout");
  mine.group->set_timeout(mine.rank, timeout);
  mine.state.set_timeout(timeout);
}
ADASUM_INLINE std::chrono::duration<double> thread_communicator::timeout ADASUM_NO_MACRO() const {
  return (get().state.timeout)();
}

// ── memory that ranks share ──

struct thread_communicator::memory::block {
  std::shared_ptr<detail::threads::group> group;
  std::shared_ptr<detail::threads::memory_block> bytes;
};

ADASUM_INLINE std::byte* thread_communicator::memory::of(std::size_t index) const { return block_->bytes->of(index); }
ADASUM_INLINE std::size_t thread_communicator::memory::bytes() const { return block_->bytes->bytes(); }
ADASUM_INLINE bool thread_communicator::memory::has_left(std::size_t index) const {
  return block_->group->has_left(index);
}
ADASUM_INLINE thread_communicator::memory thread_communicator::share(std::size_t bytes) const {
  auto& mine = get();
  const auto number = mine.shares++;  // whatever becomes of it
  memory shared;
  shared.block_ = std::make_shared<memory::block>(memory::block{mine.group, mine.group->share(number, bytes)});
  shared.ranks_.resize(static_cast<std::size_t>(size()));
  std::iota(shared.ranks_.begin(), shared.ranks_.end(), 0);
  return shared;
}

// ── messages ──

ADASUM_INLINE detail::threads::pending_messages& thread_communicator::pending::messages() {
  if (!messages_) messages_ = detail::own(detail::threads::pending_messages());
  return *static_cast<detail::threads::pending_messages*>(messages_.get());
}
ADASUM_INLINE bool thread_communicator::pending::test() {
  return !messages_ || messages().group == nullptr ||
         messages().group->progress(messages(), false, detail::threads::copy_on_host);
}
ADASUM_INLINE void thread_communicator::pending::wait() {
  if (messages_ && messages().group != nullptr)
    messages().group->progress(messages(), true, detail::threads::copy_on_host);
}

ADASUM_INLINE void thread_communicator::reserve(std::size_t messages, std::size_t) const {
  get().blocking.reserve(messages);
}
ADASUM_INLINE void thread_communicator::reserve(std::size_t messages, std::size_t, pending& exchange) const {
  exchange.messages().reserve(messages);
}

ADASUM_INLINE void thread_communicator::exchange_on_host(std::span<const outgoing> out,
                                                         std::span<const incoming> in) const {
  auto& mine = get();
  mine.group->post(mine.rank, out, in, mine.blocking);
  mine.group->progress(mine.blocking, true, detail::threads::copy_on_host);
}
ADASUM_INLINE void thread_communicator::post_on_host(std::span<const outgoing> out, std::span<const incoming> in,
                                                     pending& exchange) const {
  const auto& mine = get();
  auto& messages = exchange.messages();
  messages.group = mine.group.get();
  mine.group->post(mine.rank, out, in, messages);
}

/// A device that fails must leave no other rank waiting: its elements are withheld, and the failure is reported once
/// all messages have ended.
ADASUM_INLINE void thread_communicator::exchange_with_device(
    std::span<const outgoing> out, std::span<const incoming> in, detail::function_ref<void()> fence,
    detail::function_ref<void(const std::byte*, std::byte*, std::size_t)> transfer) const {
  auto& mine = get();
  detail::deferred_error run;
  bool sends_elements = false;
  for (const auto& message : out)
    sends_elements = sends_elements || (message.where == memory_kind::space && !message.withheld);
  if (sends_elements) run(fence);
  mine.group->post(mine.rank, out, in, mine.blocking, run.failed());
  run.even_after_failure([&] {
    mine.group->progress(mine.blocking, true, [&](const incoming& message, const std::byte* from) {
      if (message.where == memory_kind::host) return detail::threads::copy_on_host(message, from);
      if (message.discarded || run.failed()) return;
      transfer(from, message.bytes.data(), message.bytes.size());
    });
  });
  mine.group->ended().report([&] { run.rethrow(); });  // the fence may have found no memory
}

}  // namespace adasum
#endif
