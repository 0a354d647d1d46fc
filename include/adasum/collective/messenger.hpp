// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/message.hpp"
#include "../core/options.hpp"
#include "wire.hpp"

/// The messages of one reduction, and how a rank that fails lets no other wait.
///
/// Every rank knows from its stages alone which messages it exchanges, in which steps. One that fails takes all the steps
/// that it has not taken yet, but withholds its bytes; who gets such a message fails, and withholds from then on.
namespace adasum::detail {

template <scalar T, execution_space<T> Space, communicator_for<Space> Comm>
class messenger {
 public:
  /// @param space, comm     must outlive this object
  /// @param sent, received  the most elements of one exchange
  /// @param members         the most ranks that meet in one stage
  messenger(const Space& space, const Comm& comm, wire_format format, std::size_t sent, std::size_t received,
            std::size_t members)
      : space_(space), comm_(comm), wire_(space, format, sent, received) {
    out_.reserve(2 * members + 2);
    in_.reserve(2 * members + 2);
    wire_.reserve(members);
  }
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;

  /// A run begins.
  void begin_run() {
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

  // ── one exchange ──

  void begin() {
    out_.clear();
    in_.clear();
    wire_.begin();
  }
  void send(int peer, std::span<const T> elements) {
    if (elements.empty()) return;
    // What is withheld need not be made: the execution space may be what failed.
    out_.push_back(withdrawn_ ? outgoing{peer, std::as_bytes(elements), residence::space} : wire_.pack(space_, peer, elements));
  }
  void receive(int peer, std::span<T> room) {
    if (!room.empty()) in_.push_back(wire_.room_for(peer, room));
  }
  /// Something small that lies in memory of the host.
  template <class Row>
  void send_note(int peer, std::span<Row> note) {
    if (!note.empty()) out_.push_back({peer, std::as_bytes(note)});
  }
  template <class Row>
  void receive_note(int peer, std::span<Row> room) {
    if (!room.empty()) in_.push_back({peer, std::as_writable_bytes(room)});
  }
  void exchange() {
    take_step(out_, in_);
    if (!withdrawn_) wire_.unpack(space_);
  }

  /// Elements as the others will see them.
  void round(std::span<T> elements) {
    if (!withdrawn_) wire_.round(space_, elements);
  }

  /// exchange(out, in) for sums and checks of a few numbers.
  auto small_exchange() {
    return [this](std::span<const outgoing> out, std::span<const incoming> in) {
      out_.assign(out.begin(), out.end());
      take_step(out_, in);
    };
  }

  /// For exchanges that the stages alone do not call for: who withdraws must not count them.
  template <class Exchanges>
  void unscheduled(Exchanges&& exchanges) {
    scheduled_ = false;
    std::forward<Exchanges>(exchanges)();
    scheduled_ = true;
  }

 private:
  void take_step(std::span<outgoing> out, std::span<const incoming> in) {
    if (out.empty() && in.empty()) return;
    if (scheduled_ && steps_done_++ < steps_to_skip_) return;
    if (!withdrawn_) {
      for (const auto& message : out) bytes_sent_ += message.bytes.size();
      comm_.exchange(space_, out, in);
      return;
    }
    for (auto& message : out) message.withheld = true;
    try {
      comm_.exchange(space_, out, in);
    } catch (...) {  // the peers fail too, as they should
    }
  }

  const Space& space_;
  const Comm& comm_;
  wire<T, Space> wire_;
  std::vector<outgoing> out_;
  std::vector<incoming> in_;
  bool withdrawn_ = false;
  bool scheduled_ = true;  // whether the next exchange is one that the stages alone call for
  std::size_t steps_done_ = 0, steps_to_skip_ = 0;
  std::size_t bytes_sent_ = 0;
};

}  // namespace adasum::detail
