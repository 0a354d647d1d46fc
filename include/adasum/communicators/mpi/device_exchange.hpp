// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "handle.hpp"
#include "pending.hpp"
#include "staging.hpp"

namespace adasum::detail::mpi {

/// What exchanges of elements in memory of a device keep between them.
struct device_buffers {
  std::unique_ptr<device> (*make)() = nullptr;  // what has made the device in use
  std::unique_ptr<staging> copies;              // and its staging buffers
  std::vector<std::byte> discarded_bytes;  // takes what arrives and is thrown away
  ended_exchange ended;
};

/// One exchange of messages some of which lie in memory of a device. MPI is given their addresses, or, if `staged`, they
/// go through pinned memory of the host. A copy that fails must leave no other rank waiting: what cannot be sent is
/// withheld, and the failure is reported once all messages have ended.
class device_exchange {
 public:
  device_exchange(bool staged, std::size_t piece_limit, pending_messages& messages, device_buffers& buffers)
      : staged_(staged), piece_limit_(piece_limit), messages_(messages), buffers_(buffers), staging_(*buffers.copies) {}

  /// Blocks until every message has been sent and received.
  /// @throws std::bad_alloc  before anything has been posted
  void run(const communicator_handle& comm, waiting& wait, std::span<const outgoing> out,
           std::span<const incoming> in) {
    messages_.reserve(pieces(in), pieces(out));
    prepare(out, in);
    messages_.begin(comm.get(), comm.rank(), wait);
    for (const auto& message : in) messages_.receive(message.peer, buffer_for(message), limit(message));
    if (staged_) start_downloads(out);
    for (const auto& message : out) send(message);
    if (staged_) upload_arrivals();
    messages_.wait();
    buffers_.ended.report([&] { failure_.rethrow(); });  // an error of the device may have found no memory
  }

 private:
  static bool on_device(const auto& message) { return message.where == memory_kind::space; }
  static bool any_on_device(const auto& all) {
    for (const auto& message : all)
      if (on_device(message)) return true;
    return false;
  }
  /// The same on all ranks, also where some stage and others do not.
  std::size_t limit(const auto& message) const {
    return on_device(message) ? std::min(piece_limit_, staging::piece_bytes) : piece_limit_;
  }
  std::size_t pieces(const auto& all) const {
    std::size_t count = 0;
    for (const auto& message : all) count += message.bytes.size() / limit(message) + 1;
    return count;
  }
  bool withheld(const outgoing& message) const { return message.withheld || (on_device(message) && failure_.failed()); }

  /// All memory that the exchange needs. @throws std::bad_alloc
  void prepare(std::span<const outgoing> out, std::span<const incoming> in) {
    if (staged_) {
      staging_.reserve(out.size(), in.size(), pieces(out));
      failure_([&] { staging_.begin(out, in); });
    } else if (any_on_device(out) || any_on_device(in)) {
      failure_([&] { staging_.device().fence(); });  // MPI does not wait for the stream
    }
    std::size_t discarded = 0;
    for (const auto& message : in) discarded += is_discarded(message) ? message.bytes.size() : 0;
    buffers_.discarded_bytes.resize(discarded);
    place_for_discarded_ = buffers_.discarded_bytes;
  }

  bool is_discarded(const incoming& message) const {
    return on_device(message) && (message.discarded || failure_.failed());
  }

  std::span<std::byte> buffer_for(const incoming& message) {
    if (is_discarded(message)) {  // in a place of its own: MPI must not receive two messages into one
      const auto place = place_for_discarded_.first(message.bytes.size());
      place_for_discarded_ = place_for_discarded_.subspan(message.bytes.size());
      return place;
    }
    return staged_ && on_device(message) ? staging_.buffer_for(message.bytes) : message.bytes;
  }

  void start_downloads(std::span<const outgoing> out) {
    for (const auto& message : out)
      if (on_device(message) && !message.withheld)
        failure_([&] { staging_.start_download(message.bytes, limit(message)); });
  }

  void send(const outgoing& message) {
    if (!on_device(message) || !staged_ || withheld(message))
      return messages_.send(message.peer, message.bytes, limit(message), withheld(message));
    for_each_piece(staging_.next_download(), limit(message), [&](std::span<const std::byte> piece) {
      failure_([&] { staging_.wait_for_piece(); });
      messages_.send(message.peer, piece, piece_limit_, failure_.failed());
    });
  }

  void upload_arrivals() {
    messages_.for_each_arrival([&](std::span<const std::byte> piece) { failure_([&] { staging_.upload(piece); }); });
    failure_([&] { staging_.end(); });
  }

  bool staged_;
  std::size_t piece_limit_;
  pending_messages& messages_;
  device_buffers& buffers_;
  staging& staging_;
  std::span<std::byte> place_for_discarded_;
  deferred_error failure_;
};

}  // namespace adasum::detail::mpi
