// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/message.hpp"
#include "../../../core/options.hpp"
#include "../../../core/report.hpp"
#include "../../../core/segments.hpp"
#include "../../../core/stage.hpp"
#include "../../../schedules/sum_order.hpp"
#include "../../../schedules/transfers.hpp"
#include "../../references/communicator_ref.hpp"
#include "../../references/erased.hpp"
#include "../../references/space_ref.hpp"
#include "../small_exchanges.hpp"

/// The messages of one reduction, and how a rank that fails lets no other wait.
///
/// Every rank knows from its stages alone which messages it exchanges, in which steps. One that fails takes all the
/// steps that it has not taken yet, but withholds its bytes; who gets such a message fails, and withholds from then on.
namespace adasum::detail {

/// How many elements are as long as the longest records that are joined to one of these messages.
inline std::size_t room_for_records(const std::vector<transfer>& messages, std::size_t segments,
                                    std::size_t element_size) {
  std::size_t records = 0;
  for (const auto& one : messages)
    if (one.joined) records = std::max(records, one.leaves.size() * segments);
  return (records * sizeof(report::entry) + element_size - 1) / element_size;
}

/// Messages of elements: as they lie; rounded to 16 bits on their way, if asked for; or else, in memory that the host reads and
/// writes, with records at their end (transfer::joined). What is rounded or has records behind it is made in a buffer: once,
/// where several ranks get the same one after the other.
class wire {
 public:
  /// @param sent, received  the most elements that one exchange rounds and unpacks
  /// @param joined          the most that one exchange sends with records behind them, and room for these
  wire(const space_ref& space, wire_format format, std::size_t sent, std::size_t received, std::size_t joined = 0)
      : space_(space), format_(format), sent_size_(std::max<std::size_t>(sent, 1)) {
    if (rounds()) {
      sent_ = space.packing()->allocate(space.object(), sent_size_);
      received_ = space.packing()->allocate(space.object(), received);
    } else {
      sent_ = space.allocate(joined);
    }
  }

  bool rounds() const { return format_ != wire_format::same; }
  /// Forget the last exchange.
  void begin() {
    used_ = received_count_ = 0;
    last_ = {};
    arriving_.clear();
  }
  void reserve(std::size_t messages) { arriving_.reserve(messages); }

  /// @param records   the same for all peers of one exchange; none where elements are rounded
  /// @param withheld  nobody reads it, so it need not be made: the execution space may be what failed
  outgoing send(int peer, const std::byte* elements, std::size_t count, std::span<const report::entry> records = {},
                bool withheld = false) {
    const auto bytes = count * bytes_of_element();
    if (!rounds() && records.empty()) return {peer, {elements, bytes}, memory_kind::space};
    if (elements != last_.from || count != last_.count) {
      std::byte* const to = sent_.data() + used_;
      last_ = {elements, count, {to, bytes + records.size_bytes()}};
      used_ += bytes + (records.size_bytes() + bytes_of_element() - 1) / bytes_of_element() * bytes_of_element();
      if (!withheld) rounds() ? round_to(elements, to, count) : join(elements, to, count, records);
    }
    return {peer, last_.message, memory_kind::space};
  }
  /// @param records  those that arrive behind the elements, where there is room for them
  incoming receive(int peer, std::byte* elements, std::size_t count, std::span<report::entry> records = {}) {
    std::byte* to = elements;
    if (rounds()) to = received_.data() + std::exchange(received_count_, received_count_ + count) * packed_size;
    if (rounds() || !records.empty()) arriving_.push_back({to, elements, count, records});
    return {peer, {to, count * bytes_of_element() + records.size_bytes()}, memory_kind::space};
  }
  /// After the exchange: what was received, where it was wanted.
  void unpack() const {
    for (const auto& one : arriving_)
      if (rounds())
        unpack(one.from, one.elements, one.count);
      else
        std::memcpy(static_cast<void*>(one.records.data()), space_.at(one.from, one.count), one.records.size_bytes());
  }

  /// Elements as the others see them.
  void round(std::byte* elements, std::size_t count) {
    if (!rounds()) return;
    // In pieces, as long as the buffer for packing.
    for (std::size_t x = 0; x < count; x += sent_size_) {
      const auto length = std::min(sent_size_, count - x);
      std::byte* const piece = space_.at(elements, x);
      round_to(piece, sent_.data(), length);
      unpack(sent_.data(), piece, length);
    }
  }

 private:
  static constexpr std::size_t packed_size = sizeof(packed_bfloat16);
  static_assert(sizeof(packed_binary16) == packed_size);

  struct made_message {
    const std::byte* from = nullptr;
    std::size_t count = 0;
    std::span<const std::byte> message{};
  };
  struct arriving {
    const std::byte* from;
    std::byte* elements;
    std::size_t count;
    std::span<report::entry> records;
  };

  std::size_t bytes_of_element() const { return rounds() ? packed_size : space_.element_size(); }
  void join(const std::byte* from, std::byte* to, std::size_t count, std::span<const report::entry> records) const {
    space_.copy(from, to, count);
    space_.fence();
    std::memcpy(space_.at(to, count), records.data(), records.size_bytes());
  }
  void round_to(const std::byte* from, std::byte* to, std::size_t count) {
    if (count == 0) return;
    space_.packing()->pack(space_.object(), format_, from, to, count);
    space_.fence();
  }
  void unpack(const std::byte* from, std::byte* to, std::size_t count) const {
    if (count == 0) return;
    space_.packing()->unpack(space_.object(), format_, from, to, count);
    space_.fence();
  }

  space_ref space_;
  wire_format format_;
  std::size_t sent_size_;  // elements
  space_memory sent_, received_;
  std::size_t used_ = 0;            // of what is sent, in bytes
  std::size_t received_count_ = 0;  // elements
  made_message last_;
  std::vector<arriving> arriving_;
};

/// How much memory a rank's messages take.
struct message_sizes {
  std::size_t members = 1;               ///< the most ranks that meet
  std::size_t received = 0;              ///< elements of other members' vectors
  std::size_t packed = 0, unpacked = 0;  ///< elements of one exchange, where they are rounded
  std::size_t joined = 0;                ///< elements that are sent with records behind them, and room for these
  std::size_t sums = 0;                  ///< doubles that are received when inner products are added

  /// Inner products that are added over a stage's sum_over. @param products  doubles at once
  void include_sum(const stage& stage, std::size_t products) {
    members = std::max(members, stage.members.size());
    sums = std::max(sums, products * sum_order::most_received(stage.sum_over.size(), sum_radix(stage.members.size())));
  }
  /// An exchange of elements, and of records behind them where these are joined. What is received may lie beside the gradient:
  /// what a stage combines, and the result on a rank that has withdrawn.
  void include(const transfers& exchange, std::size_t segments, std::size_t element_size) {
    const auto behind_sent = room_for_records(exchange.sends, segments, element_size),
               behind_received = room_for_records(exchange.receives, segments, element_size);
    std::size_t sent = 0, sent_with_records = 0, arriving = 0;
    index_range last;
    for (const auto& one : exchange.sends) {
      sent += one.elements.size();
      // Once, if several get the same.
      if (one.joined && one.elements != last) sent_with_records += one.elements.size() + behind_sent;
      last = one.elements;
    }
    for (const auto& one : exchange.receives) arriving += one.elements.size();
    members = std::max({members, exchange.sends.size() + 1, exchange.receives.size() + 1});
    packed = std::max(packed, sent);
    unpacked = std::max(unpacked, arriving);
    received = std::max(received, arriving + exchange.receives.size() * behind_received);
    joined = std::max(joined, sent_with_records);
  }
};

class messenger {
 public:
  /// @param longest  the most bytes of one message
  messenger(const space_ref& space, const communicator_ref& comm, wire_format format, const message_sizes& sizes,
            std::size_t longest)
      : is_device_(space.is_device()),
        comm_(comm),
        wire_(space, format, sizes.packed, sizes.unpacked, sizes.joined),
        pending_(comm.can_post() ? comm.make_pending() : no_object()) {
    // To a member that waits, elements, records and norms are messages of their own.
    const auto messages = std::max(3 * sizes.members, sum_order::most_messages);
    out_.reserve(messages);
    in_.reserve(messages);
    wire_.reserve(sizes.members);
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
  }
  /// From here on, walking through the stages again skips the steps that were taken and withholds in the others.
  void withdraw() {
    withdrawn_ = scheduled_ = true;
    steps_to_skip_ = std::exchange(steps_done_, 0);
  }
  bool withdrawn() const { return withdrawn_; }
  std::size_t bytes_sent() const { return bytes_sent_; }

  // ── one exchange: put together, start, wait until it has arrived, unpack ──
  void begin() {
    out_.clear();
    in_.clear();
    wire_.begin();
  }
  /// @param records  that are joined to the elements
  void send(int peer, const std::byte* elements, std::size_t count, std::span<const report::entry> records = {}) {
    if (count > 0) out_.push_back(wire_.send(peer, elements, count, records, withdrawn_));
  }
  void receive(int peer, std::byte* to, std::size_t count, std::span<report::entry> records = {}) {
    if (count > 0) in_.push_back(wire_.receive(peer, to, count, records));
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
    if (!withdrawn_) wire_.unpack();
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
