// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/message.hpp"
#include "../../../core/report.hpp"
#include "../../../schedule/sum_order.hpp"
#include "../../references/communicator_ref.hpp"
#include "../../references/function_ref.hpp"
#include "../../references/space_ref.hpp"
#include "../attempt.hpp"
#include "joined.hpp"
#include "wire.hpp"

/// The messages of one reduction, and how a rank that fails lets no other wait.
///
/// Every rank knows from its stages alone which messages it exchanges, in which steps. One that fails takes all the
/// steps that it has not taken yet, but withholds its bytes; who gets such a message fails, and withholds from then on.
namespace adasum::detail {

class messenger {
 public:
  /// @param sent, received  the most elements of one exchange
  /// @param joined          see joined_messages
  /// @param members         the most ranks that meet in one stage
  /// @param longest         the most bytes of one message
  messenger(const space_ref& space, const communicator_ref& comm, wire_format format, std::size_t sent,
            std::size_t received, std::size_t joined, std::size_t members, std::size_t longest)
      : is_device_(space.is_device()),
        comm_(comm),
        wire_(space, format, sent, received),
        joined_(space, joined),
        pending_(comm.can_post() ? comm.make_pending() : no_object()) {
    // To a member that waits, elements, records and norms are messages of their own.
    const auto messages = std::max(3 * members, sum_order::most_messages);
    out_.reserve(messages);
    in_.reserve(messages);
    wire_.reserve(members);
    joined_.reserve(members);
    if (is_device_) return;
    // In time, where the communicator can: the others wait for messages that it has no memory to send.
    comm.reserve(messages, longest);
    if (comm.can_post()) comm.reserve(messages, longest, pending_.get());
  }
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;

  /// A run begins.
  /// @param posts  whether exchanges are posted, where the communicator can, so that arrived() need not block
  void begin_run(bool posts) {
    posts_ = posts && comm_.can_post();
    withdrawn_ = false;
    scheduled_ = true;
    steps_done_ = steps_to_skip_ = bytes_sent_ = 0;
    wire_.begin_run();
  }
  /// From here on, walking through the stages again skips the steps that were taken and withholds in the others.
  void withdraw() {
    withdrawn_ = scheduled_ = true;
    steps_to_skip_ = std::exchange(steps_done_, 0);
  }
  bool withdrawn() const { return withdrawn_; }
  std::size_t bytes_sent() const { return bytes_sent_; }
  /// See wire::losses.
  std::optional<wire_losses> losses() const { return wire_.losses(); }

  // ── one exchange: put together, start, wait until it has arrived, unpack ──
  void begin() {
    out_.clear();
    in_.clear();
    wire_.begin();
    joined_.begin();
  }
  /// @param records  that are joined to the elements
  void send(int peer, const std::byte* elements, std::size_t count, std::span<const report::entry> records = {}) {
    if (count == 0) return;
    if (!records.empty()) return out_.push_back(joined_.send(peer, elements, count, records, withdrawn_));
    // What is withheld need not be made: the execution space may be what failed.
    out_.push_back(withdrawn_ ? outgoing{peer, wire_.as_long_as(elements, count), memory_kind::space}
                              : wire_.pack(peer, elements, count));
  }
  void receive(int peer, std::byte* to, std::size_t count, std::span<report::entry> records = {}) {
    if (count == 0) return;
    in_.push_back(records.empty() ? wire_.buffer_for(peer, to, count) : joined_.receive(peer, to, count, records));
  }
  /// Something small that lies in memory of the host.
  void send_record(int peer, std::span<const std::byte> record) {
    if (!record.empty()) out_.push_back({peer, record});
  }
  void receive_record(int peer, std::span<std::byte> to) {
    if (!to.empty()) in_.push_back({peer, to});
  }
  /// @return whether there is anything to wait for
  [[nodiscard]] bool start() {
    if (out_.empty() && in_.empty()) return false;
    if (scheduled_ && steps_done_ < steps_to_skip_) {
      ++steps_done_;
      return false;
    }
    for (auto& message : out_) {
      message.withheld = withdrawn_;
      if (!withdrawn_) bytes_sent_ += message.bytes.size();
    }
    if (is_device_)
      for (auto& buffer : in_) buffer.discarded = withdrawn_ && buffer.where == memory_kind::space;
    bool posted = true;
    if (posts_) posted = unless_withdrawn([&] { attempt([&] { comm_.post(out_, in_, pending_.get()); }); });
    if (scheduled_) ++steps_done_;  // what could not be posted is withheld later
    return posted;
  }
  /// Starts the next of the exchanges of a sum or check of a few numbers.
  /// @return whether there is anything to wait for; otherwise all of them have been made
  template <class Exchanges>
  [[nodiscard]] bool start_next(Exchanges& exchanges) {
    for (begin(); exchanges.next(out_, in_); begin())
      if (start()) return true;
    return false;
  }
  /// Whether the exchange that was started has ended. @param block  wait until it has
  /// @throws what the communicator throws, unless this rank has withdrawn
  bool arrived(bool block) {
    if (posts_) {
      bool ended = true;
      unless_withdrawn([&] { block ? comm_.wait(pending_.get()) : void(ended = comm_.test(pending_.get())); });
      return ended;
    }
    if (block) unless_withdrawn([&] { exchange(); });
    return block;
  }
  void unpack() {
    if (withdrawn_) return;
    wire_.unpack();
    joined_.unpack();
  }
  /// Elements as the others will see them.
  void round(std::byte* elements, std::size_t count) { wire_.round(elements, count); }
  /// Whether the exchanges from here on are called for by the stages alone: others, who withdraws must not count.
  void set_scheduled(bool scheduled) { scheduled_ = scheduled; }

 private:
  void exchange() {
    try {
      attempt([&] { comm_.exchange(out_, in_); });
    } catch (const std::bad_alloc&) {  // nothing has been exchanged: it is withheld later
      if (scheduled_) --steps_done_;
      throw;
    }
  }

  /// Where this rank has withdrawn, its peers fail too, as they should. @return whether nothing was thrown
  bool unless_withdrawn(function_ref<void()> action) {
    try {
      action();
      return true;
    } catch (...) {
      if (!withdrawn_) throw;
      return false;
    }
  }

  bool is_device_;
  communicator_ref comm_;
  wire wire_;
  joined_messages joined_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  owned_object pending_;
  bool posts_ = false;
  bool withdrawn_ = false;
  bool scheduled_ = true;  // whether the next exchange is one that the stages alone call for
  std::size_t steps_done_ = 0, steps_to_skip_ = 0;
  std::size_t bytes_sent_ = 0;
};

}  // namespace adasum::detail
