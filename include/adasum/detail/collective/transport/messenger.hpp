// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../../core/config.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "../../../core/concepts.hpp"
#include "../../../core/message.hpp"
#include "../../../core/options.hpp"
#include "../../../core/pending.hpp"
#include "../../../core/report.hpp"
#include "../../../schedule/sum_order.hpp"
#include "../attempt.hpp"
#include "joined.hpp"
#include "told_losses.hpp"
#include "wire.hpp"

/// The messages of one reduction, and how a rank that fails lets no other wait.
///
/// Every rank knows from its stages alone which messages it exchanges, in which steps. One that fails takes all the
/// steps that it has not taken yet, but withholds its bytes; who gets such a message fails, and withholds from then on.
namespace adasum::detail {

template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class messenger {
 public:
  /// @param space, comm     must outlive this object
  /// @param sent, received  the most elements of one exchange
  /// @param joined          see joined_messages
  /// @param members         the most ranks that meet in one stage
  /// @param longest         the most bytes of one message
  messenger(const Space& space, const Comm& comm, wire_format format, std::size_t sent, std::size_t received,
            std::size_t joined, std::size_t members, std::size_t longest)
      : space_(space), comm_(comm), wire_(space, format, sent, received, members), joined_(space, joined) {
    // To a member that waits, elements, records and norms are messages of their own.
    const auto messages = std::max(3 * members, sum_order::most_messages);
    out_.reserve(messages);
    in_.reserve(messages);
    wire_.reserve(members);
    joined_.reserve(members);
    if constexpr (!device_space<Space>) reserve(messages, longest);
  }
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;

  /// A run begins.
  /// @param posts  whether exchanges are posted, where the communicator can, so that arrived() need not block
  void begin_run(bool posts) {
    posts_ = posts;
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
    joined_.begin();
  }
  /// @param records  that are joined to the elements
  /// @param lost     what their vector has lost in rounding, told with elements that are rounded
  void send(int peer, std::span<const T> elements, std::span<const report::entry> records = {},
            const told_losses& lost = {}) {
    if (elements.empty()) return;
    if (!records.empty()) return out_.push_back(joined_.send(space_, peer, elements, records, withdrawn_));
    // What is withheld need not be made: the execution space may be what failed.
    out_.push_back(withdrawn_ ? outgoing{peer, wire_.as_long_as(elements), memory_kind::space}
                              : wire_.pack(space_, peer, elements, lost));
  }
  void receive(int peer, std::span<T> to, std::span<report::entry> records = {}) {
    if (to.empty()) return;
    in_.push_back(records.empty() ? wire_.buffer_for(peer, to) : joined_.receive(peer, to, records));
  }
  /// Something small that lies in memory of the host.
  template <class Row>
  void send_record(int peer, std::span<Row> record) {
    if (!record.empty()) out_.push_back({peer, std::as_bytes(record)});
  }
  template <class Row>
  void receive_record(int peer, std::span<Row> to) {
    if (!to.empty()) in_.push_back({peer, std::as_writable_bytes(to)});
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
    if constexpr (device_space<Space>)
      for (auto& buffer : in_) buffer.discarded = withdrawn_ && buffer.where == memory_kind::space;
    bool posted = true;
    if constexpr (can_post)
      if (posts_) posted = unless_withdrawn([&] { attempt([&] { comm_.post(space_, out_, in_, pending_); }); });
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
    if constexpr (can_post)
      if (posts_) {
        bool ended = true;
        unless_withdrawn([&] { block ? pending_.wait() : void(ended = pending_.test()); });
        return ended;
      }
    if (block) unless_withdrawn([&] { exchange(); });
    return block;
  }
  /// @return what the vectors that were received have lost in rounding
  told_losses unpack() {
    if (withdrawn_) return {};
    const auto lost = wire_.unpack(space_);
    joined_.unpack();
    return lost;
  }

  /// Elements as the others will see them. @return what they lost
  told_losses round(std::span<T> elements) { return wire_.round(space_, elements); }

  /// Whether the exchanges from here on are called for by the stages alone: others, who withdraws must not count.
  void set_scheduled(bool scheduled) { scheduled_ = scheduled; }

 private:
  /// In time, where the communicator can: the others wait for messages that it has no memory to send.
  void reserve(std::size_t messages, std::size_t longest) {
    if constexpr (requires { comm_.reserve(messages, longest); }) comm_.reserve(messages, longest);
    if constexpr (can_post)
      if constexpr (requires { comm_.reserve(messages, longest, pending_); })
        comm_.reserve(messages, longest, pending_);
  }
  void exchange() {
    try {
      attempt([&] { comm_.exchange(space_, out_, in_); });
    } catch (const std::bad_alloc&) {  // nothing has been exchanged: it is withheld later
      if (scheduled_) --steps_done_;
      throw;
    }
  }
  static constexpr bool can_post = posting_communicator<Comm, Space>;
  static_assert(
      can_post || device_space<Space> || !requires { typename Comm::pending; },
      "a communicator with a type `pending` must be a posting_communicator: see core/concepts.hpp");

  /// Where this rank has withdrawn, its peers fail too, as they should. @return whether nothing was thrown
  template <class Action>
  bool unless_withdrawn(Action&& action) {
    try {
      std::forward<Action>(action)();
      return true;
    } catch (...) {
      if (!withdrawn_) throw;
      return false;
    }
  }

  const Space& space_;
  const Comm& comm_;
  wire<T, Space> wire_;
  joined_messages<T, Space> joined_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  typename pending_of<Comm, Space>::type pending_;
  bool posts_ = false;
  bool withdrawn_ = false;
  bool scheduled_ = true;  // whether the next exchange is one that the stages alone call for
  std::size_t steps_done_ = 0, steps_to_skip_ = 0;
  std::size_t bytes_sent_ = 0;
};

}  // namespace adasum::detail
