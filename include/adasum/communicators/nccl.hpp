// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <nccl.h>

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "../core/communicator_state.hpp"
#include "../core/concepts.hpp"
#include "../core/error.hpp"
#include "../core/message.hpp"
#include "../core/stay_loaded.hpp"

namespace adasum {

/// A call of NCCL failed.
class nccl_error : public communication_error {
 public:
  /// @param call  the function that failed; @param code  what it returned
  nccl_error(const char* call, ncclResult_t code)
      : communication_error(std::string("adasum: ") + call + " failed: " + ncclGetErrorString(code)),
        call_(call),
        code_(code) {}

  /// The name of the function that failed, such as "ncclSend".
  const char* call() const { return call_; }
  /// What it returned.
  ncclResult_t code() const { return code_; }

 private:
  const char* call_;
  ncclResult_t code_;
};

/// The ranks of an NCCL communicator, which the caller owns and which must outlive this object. Needs no MPI.
///
///     const adasum::cuda_space exec{stream};
///     const adasum::nccl_communicator ranks{comm};
///     adasum::enqueue_adasum_allreduce(exec, ranks, gradient, segments);  // returns at once
///     adasum::adasum_allreduce(exec, ranks, gradient, segments);          // returns a report when the result is there
///
/// enqueue_adasum_allreduce and plan_enqueued_allreduce work in the order of the space's stream, as ncclAllReduce does:
/// the host waits for nothing. The other calls give a report, and so wait for the stream at each exchange.
///
/// As with NCCL itself, it serves one thread at a time, all ranks make the same calls in the same order, and sizes must
/// be the same on all ranks (options::check_agreement compares them first). The communicator must be a blocking one (the
/// default of ncclConfig_t).
///
/// Messages are groups of ncclSend and ncclRecv. So are small sums, which go to all ranks concerned and are added in
/// one order: unlike those of ncclAllReduce, they have the same bits on every rank whatever algorithm NCCL would
/// choose, also where only some of the ranks take part. A rank whose device fails for good cannot tell the others:
/// abort the communicator then (ncclCommAbort).
///
/// A default-constructed communicator, one made from a null ncclComm_t, and one that was moved from are empty: they can
/// be copied, assigned to, and tested (`if (comm)`); anything else throws bad_input.
class nccl_communicator {
 public:
  /// An empty communicator.
  nccl_communicator() = default;

  /// @throws nccl_error  naming the call that failed
  explicit nccl_communicator(ncclComm_t comm) : held_(comm ? std::make_shared<contents>(comm) : nullptr) {}

  /// Whether this communicator has ranks, that is, is not empty.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// The number of this rank, from 0.
  int rank() const { return get().rank; }
  /// How many ranks there are.
  int size() const { return get().size; }
  /// Null if this communicator is empty.
  ncclComm_t native() const { return held_ ? held_->comm : nullptr; }

  /// Of this object and its copies; see the concept communicator_for. Another object that was made from the same ncclComm_t has
  /// one of its own, and so does not know of a plan that is in flight here.
  communicator_state& state() const { return get().of_handles; }

  /// Starts messages of elements in memory of the device, in the order of the space's stream. See
  /// stream_ordered_communicator.
  template <device_space Space>
  void enqueue(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    get();  // throws where NCCL would crash: on an empty communicator
    group together;
    for (const auto& buffer : in) receive(space, buffer.bytes, buffer.peer);
    for (const auto& message : out) send(space, message.bytes, message.peer);
    together.end();
  }

  /// Blocks until every message has been sent and received. See the concept communicator_for. Each message is preceded by
  /// a word that says its size, or that it is withheld. Bytes in memory of the host travel through pinned memory.
  /// @throws std::bad_alloc  nothing has been sent or received
  template <device_space Space>
  void exchange(const Space& space, std::span<const outgoing> out, std::span<const incoming> in) const {
    staging<Space>& copies = get().template staging_for<Space>();
    const auto sent = bytes_of(out), received = bytes_of(in);
    copies.reserve(space, sent + received);
    std::byte *const here = copies.host.data(), *const there = reinterpret_cast<std::byte*>(copies.device.data());

    for_each(out, here, [](const outgoing& message, std::byte* word, std::byte* copy) {
      const std::uint64_t size = message.withheld ? withheld : message.bytes.size();
      std::memcpy(word, &size, sizeof size);
      if (message.where == memory_kind::host && !message.withheld) detail::copy_bytes(message.bytes, copy);
    });
    space.upload(here, there, sent);
    get().ended.report([&] {
      run(space, out, in, there, there + sent);
      space.download(there + sent, here + sent, received);
      space.fence();
      unpack(in, here + sent);
    });
  }

 private:
  static constexpr std::uint64_t withheld = static_cast<std::uint64_t>(-1);

  /// Calls that NCCL takes together. Closed in any case: an open group would swallow all later calls of this thread.
  class group {
   public:
    group() { check("ncclGroupStart", ncclGroupStart()); }
    group(const group&) = delete;
    group& operator=(const group&) = delete;
    ~group() {
      if (open_) static_cast<void>(ncclGroupEnd());
    }
    void end() {
      open_ = false;
      check("ncclGroupEnd", ncclGroupEnd());
    }

   private:
    bool open_ = true;
  };

  static void check(const char* call, ncclResult_t code) {
    if (code != ncclSuccess) throw nccl_error(call, code);
  }

  /// @param sent, received  words and copies in memory of the device, in the order of the messages
  template <class Space>
  void run(const Space& space, std::span<const outgoing> out, std::span<const incoming> in, std::byte* sent,
           std::byte* received) const {
    group together;
    for_each(in, received, [&](const incoming& message, std::byte* word, std::byte* copy) {
      receive(space, {word, sizeof(std::uint64_t)}, message.peer);
      receive(space, is_copied(message) ? std::span(copy, message.bytes.size()) : message.bytes, message.peer);
    });
    for_each(out, sent, [&](const outgoing& message, std::byte* word, std::byte* copy) {
      send(space, {word, sizeof(std::uint64_t)}, message.peer);
      send(space, is_copied(message) ? std::span<const std::byte>(copy, message.bytes.size()) : message.bytes,
           message.peer);
    });
    together.end();
  }
  /// @param received  words and copies in memory of the host
  void unpack(std::span<const incoming> in, std::byte* received) const {
    std::string problem;
    for_each(in, received, [&](const incoming& message, std::byte* word, std::byte* copy) {
      std::uint64_t size = 0;
      std::memcpy(&size, word, sizeof size);
      if (size != message.bytes.size())
        problem = size == withheld ? detail::joined({"rank ", message.peer, " has failed"})
                                   : detail::joined({"rank ", message.peer, " sent ", detail::counted(size, "byte"),
                                                     " instead of the expected ", message.bytes.size()});
      else if (message.where == memory_kind::host)
        detail::copy_bytes({copy, message.bytes.size()}, message.bytes.data());
    });
    if (!problem.empty()) throw communication_error({"adasum::nccl_communicator: rank ", rank(), ": ", problem});
  }

  template <class Space>
  void send(const Space& space, std::span<const std::byte> bytes, int peer) const {
    check("ncclSend", ncclSend(bytes.data(), bytes.size(), ncclUint8, peer, native(), space.stream()));
  }
  template <class Space>
  void receive(const Space& space, std::span<std::byte> bytes, int peer) const {
    check("ncclRecv", ncclRecv(bytes.data(), bytes.size(), ncclUint8, peer, native(), space.stream()));
  }

  // A word for each message, and a copy of those of the host.
  static constexpr std::size_t word_bytes = 16;
  template <class Message>
  static std::size_t copied_bytes(const Message& message) {
    return is_copied(message) ? (message.bytes.size() + 15) / 16 * 16 : 0;
  }
  // What is withheld or discarded has no memory of its own; NCCL wants some on both sides all the same.
  static bool is_copied(const outgoing& message) { return message.where == memory_kind::host || message.withheld; }
  static bool is_copied(const incoming& message) { return message.where == memory_kind::host || message.discarded; }
  template <class Message>
  static std::size_t bytes_of(std::span<const Message> messages) {
    std::size_t bytes = 0;
    for (const auto& message : messages) bytes += word_bytes + copied_bytes(message);
    return bytes;
  }
  /// visit(message, its word, its copy)
  template <class Message, class Visitor>
  static void for_each(std::span<const Message> messages, std::byte* at, Visitor&& visit) {
    for (const auto& message : messages) {
      visit(message, at, at + word_bytes);
      at += word_bytes + copied_bytes(message);
    }
  }

  /// Kept between calls.
  template <class Space>
  struct staging {
    typename Space::host_memory host{0};
    decltype(std::declval<const Space&>().template allocate<double>(0)) device;  // in no stream's order: it may outlive one
    std::size_t capacity = 0;
    int on = -1;  // which device

    void reserve(const Space& space, std::size_t bytes) {
      if (bytes <= capacity && on == space.device()) return;
      const auto more = std::max({bytes, 2 * capacity, std::size_t{4096}});
      capacity = 0;
      device = space.template allocate<double>((more + sizeof(double) - 1) / sizeof(double));
      host = typename Space::host_memory(more);
      capacity = more;
      on = space.device();
    }
  };

  struct contents {
    explicit contents(ncclComm_t handle) : comm(handle) {
      check("ncclCommUserRank", ncclCommUserRank(comm, &rank));
      check("ncclCommCount", ncclCommCount(comm, &size));
    }

    template <class Space>
    staging<Space>& staging_for() {
      using kind = std::shared_ptr<staging<Space>>;
      if (auto* const known = std::any_cast<kind>(&staging_of_device)) return **known;
      detail::stay_loaded();  // another library's communicator may destroy it later
      return *staging_of_device.emplace<kind>(std::make_shared<staging<Space>>());
    }

    ncclComm_t comm;
    int rank = 0, size = 0;
    communicator_state of_handles;
    detail::ended_exchange ended;
    std::any staging_of_device;
  };

  contents& get() const {
    if (!held_)
      throw bad_input("adasum::nccl_communicator: this communicator is empty: it has no ranks to communicate with");
    return *held_;
  }

  std::shared_ptr<contents> held_;
};

}  // namespace adasum
