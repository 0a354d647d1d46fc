// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <adasum/core/config.hpp>

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <adasum/core/communicator_state.hpp>
#include <adasum/core/message.hpp>
#include "error.hpp"

namespace adasum::detail::c10d {

/// The messages of one exchange after another, over the point-to-point calls of a process group, which do not tell how long
/// a message was. So each begins with a packet: a word that gives its size, or says that it is withheld, and its first
/// bytes. The rest follows with a tag of its own, and is received once the word is there.
class messages {
 public:
  /// @param state  of the communicator, which must outlive this object: it is told of a failure
  messages(c10::intrusive_ptr<::c10d::ProcessGroup> group, communicator_state& state)
      : group_(std::move(group)), rank_(group_->getRank()), state_(state) {}
  messages(const messages&) = delete;
  messages& operator=(const messages&) = delete;
  ~messages() { leave_to_group(); }

  /// Blocks until all have been sent and received.
  /// @throws std::bad_alloc  nothing has been sent or received
  /// @throws c10d_error  the group failed, and is of no use any more
  /// @throws communication_error  once all have arrived: one was withheld, or did not have the size of its buffer
  void exchange(std::span<const outgoing> out, std::span<const incoming> in) { require_right(exchange_all(out, in)); }

  // ── for exchanges that consist of these and of others ──

  /// The same, but returns what is wrong with the first message that was not as expected; empty if none.
  std::string exchange_all(std::span<const outgoing> out, std::span<const incoming> in) {
    if (state_.gave_up()) throw communication_error(broken_text_);
    prepare(out, in);
    std::string wrong;
    guarded_by_state([&] {
      start(out, in);
      for (std::size_t i = 0; i < in.size(); ++i) take_packet(in[i], i, wrong);
      for (std::size_t i = 0; i < rests_.size(); ++i) wait(rests_[i], "receiving from", rest_peers_[i]);
      for (auto& [work, peer] : sends_) wait(work, "sending to", peer);
    });
    return wrong;
  }

  int rank() const { return rank_; }

  /// What a rank says of a message: its size, or that it is withheld.
  using word = std::uint64_t;
  static constexpr word withheld = static_cast<word>(-1);
  /// @param wrong  what is wrong with the first message that is not as expected; empty if none is yet
  static void find_problem(const incoming& message, word said, std::string& wrong) {
    if (said == message.bytes.size() || !wrong.empty()) return;
    const auto name = "rank " + std::to_string(message.peer);
    wrong = said == withheld ? name + " has failed, and withheld its message"
                             : detail::joined({name, " sent ", detail::counted(said, "byte"),
                                               " instead of the expected ", message.bytes.size()});
  }
  void require_right(const std::string& wrong) const {
    if (!wrong.empty()) throw communication_error({"adasum::c10d_communicator: rank ", rank_, ": ", wrong});
  }

  /// A call of the process group's. @throws c10d_error  it failed
  template <class Call>
  auto guarded(const char* doing, int peer, const Call& call) {
    try {
      return call();
    } catch (const std::exception& cause) {
      throw c10d_error(rank_, doing, peer, cause.what());
    }
  }
  /// After a failure of these calls, the communicator is of no use.
  template <class Calls>
  void guarded_by_state(const Calls& calls) {
    try {
      calls();
    } catch (const communication_error& failure) {
      break_with(failure.what());
      throw;
    } catch (const std::exception& failure) {
      break_with(failure.what());
      throw communication_error(broken_text_);
    }
  }

 private:
  using work_ptr = c10::intrusive_ptr<::c10d::Work>;
  static constexpr std::size_t first_bytes = 1024;
  static constexpr std::size_t packet_bytes = sizeof(word) + first_bytes;
  // Any numbers that programs are unlikely to use themselves. MPI allows 32767 at most.
  static constexpr int packet_tag = 24301, rest_tag = 24302;

  static std::size_t rest_of(std::size_t bytes) { return bytes - std::min(bytes, first_bytes); }
  static at::Tensor bytes_at(const void* at, std::size_t count) {
    return at::from_blob(const_cast<void*>(at), {static_cast<std::int64_t>(count)},
                         at::TensorOptions().dtype(at::kByte));
  }

  /// What allocates, as far as this class does.
  void prepare(std::span<const outgoing> out, std::span<const incoming> in) {
    packets_.resize(std::max(packets_.size(), (out.size() + in.size()) * packet_bytes));
    sends_.clear();
    arrivals_.clear();
    rests_.clear();
    rest_peers_.clear();
    scratch_.clear();
    sends_.reserve(2 * out.size());
    arrivals_.reserve(in.size());
    rests_.reserve(in.size());
    rest_peers_.reserve(in.size());
  }

  void start(std::span<const outgoing> out, std::span<const incoming> in) {
    std::byte* packet = packets_.data();
    for (const auto& message : in) {
      arrivals_.push_back(receive(bytes_at(packet, packet_bytes), message.peer, packet_tag));
      packet += packet_bytes;
    }
    for (const auto& message : out) {
      const auto size = message.withheld ? 0 : message.bytes.size(), first = size - rest_of(size);
      const word said = message.withheld ? withheld : size;
      std::memcpy(packet, &said, sizeof said);
      if (first) std::memcpy(packet + sizeof said, message.bytes.data(), first);
      send(bytes_at(packet, sizeof said + first), message.peer, packet_tag);
      if (rest_of(size)) send(bytes_at(message.bytes.data() + first, rest_of(size)), message.peer, rest_tag);
      packet += packet_bytes;
    }
  }

  /// Waits for the packet of message i, copies what is in it, and starts to receive the rest, wherever that belongs.
  void take_packet(const incoming& message, std::size_t i, std::string& wrong) {
    wait(arrivals_[i], "receiving from", message.peer);
    const std::byte* const packet = packets_.data() + i * packet_bytes;
    word size = 0;
    std::memcpy(&size, packet, sizeof size);
    find_problem(message, size, wrong);
    const bool fits = size == message.bytes.size();
    if (size == withheld) return;
    if (fits && size) std::memcpy(message.bytes.data(), packet + sizeof size, size - rest_of(size));
    const auto rest = rest_of(size);
    if (!rest) return;
    if (!fits) scratch_.push_back(at::empty({static_cast<std::int64_t>(rest)}, at::TensorOptions().dtype(at::kByte)));
    rests_.push_back(
        receive(fits ? bytes_at(message.bytes.data() + first_bytes, rest) : scratch_.back(), message.peer, rest_tag));
    rest_peers_.push_back(message.peer);
  }

  void send(at::Tensor bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors{std::move(bytes)};
    sends_.emplace_back(guarded("sending to", peer, [&] { return group_->send(tensors, peer, tag); }), peer);
  }
  work_ptr receive(at::Tensor bytes, int peer, int tag) {
    std::vector<at::Tensor> tensors{std::move(bytes)};
    return guarded("receiving from", peer, [&] { return group_->recv(tensors, peer, tag); });
  }
  void wait(work_ptr& work, const char* doing, int peer) {
    guarded(doing, peer, [&] { work->wait(); });
    work.reset();
  }

  void break_with(const char* why) {
    state_.give_up();
    try {
      broken_text_ = why;
    } catch (const std::bad_alloc&) {
      broken_text_.clear();
    }
    leave_to_group();
  }
  /// What is in flight still after a failure. Gloo no longer touches the memory of works that are destroyed. A process group
  /// of MPI ends the program if one is: they stay for good, with their packets.
  void leave_to_group() noexcept {
    if (state_.gave_up() && group_->getBackendName() == "mpi")
      static_cast<void>(new (std::nothrow) auto(std::tuple(std::move(sends_), std::move(arrivals_), std::move(rests_),
                                                           std::move(packets_), std::move(scratch_))));
    sends_.clear();
    arrivals_.clear();
    rests_.clear();
  }

  c10::intrusive_ptr<::c10d::ProcessGroup> group_;
  int rank_;
  communicator_state& state_;
  std::string broken_text_;
  std::vector<std::byte> packets_;  // those received, then those sent
  std::vector<std::pair<work_ptr, int>> sends_;
  std::vector<work_ptr> arrivals_, rests_;
  std::vector<int> rest_peers_;
  std::vector<at::Tensor> scratch_;  // for messages that do not fit
};

}  // namespace adasum::detail::c10d
