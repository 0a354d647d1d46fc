// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../core/message.hpp"
#include "error.hpp"
#include "waiting.hpp"

namespace adasum::detail::mpi {

/// Cuts a message into pieces of at most `limit` bytes and visits each; an empty message is one empty piece. MPI counts
/// in int, and shorter pieces let copies overlap. Pieces arrive in the order in which they were sent.
template <class Byte, class Visitor>
void for_each_piece(std::span<Byte> bytes, std::size_t limit, Visitor&& visit) {
  std::size_t done = 0;
  do {
    const auto piece = bytes.subspan(done, std::min(limit, bytes.size() - done));
    visit(piece);
    done += piece.size();
  } while (done < bytes.size());
}

/// The messages of one exchange: begin(), then receive() for all that are expected, then send(), then test() or wait().
/// Errors are kept until all messages have ended, so that MPI no longer writes to a buffer when one is thrown. An object
/// serves one exchange after another and keeps its memory: none is allocated once it has grown to the size it needs.
class pending_messages {
 public:
  pending_messages() = default;
  pending_messages(std::size_t receives, std::size_t sends) { reserve(receives, sends); }

  /// @param wait  the communicator's; until the messages have ended
  void begin(MPI_Comm comm, int rank, waiting& wait) {
    comm_ = comm;
    rank_ = rank;
    waiting_ = &wait;
    failure_ = {};
    ended_ = 0;
    requests_.clear();
    expected_.clear();
    peers_.clear();
    copies_.clear();
  }

  /// Memory for the requests of so many messages, received and sent: the others wait for what one of them would send.
  /// @throws std::bad_alloc  nothing has been posted
  void reserve(std::size_t receives, std::size_t sends) {
    requests_.reserve(receives + sends);
    peers_.reserve(sends);
    copies_.reserve(receives + sends);
    expected_.reserve(receives);
  }

  void receive(int peer, std::span<std::byte> buffer, std::size_t piece_limit) {
    for_each_piece(buffer, piece_limit, [&](std::span<std::byte> piece) {
      requests_.push_back(MPI_REQUEST_NULL);
      expected_.push_back({peer, piece, needs_copy(piece) ? new_copy() : nullptr});
      auto* const at = expected_.back().copy ? expected_.back().copy : piece.data();
      failure_([&] {
        check("MPI_Irecv", MPI_Irecv(at, static_cast<int>(piece.size()), MPI_BYTE, peer, 0, comm_, &requests_.back()));
      });
    });
  }

  /// @param withheld  send the same number of pieces, all of them empty: this rank has failed
  void send(int peer, std::span<const std::byte> message, std::size_t piece_limit, bool withheld) {
    for_each_piece(message, piece_limit, [&](std::span<const std::byte> piece) {
      requests_.push_back(MPI_REQUEST_NULL);
      peers_.push_back(peer);
      const auto* at = piece.data();
      if (needs_copy(piece)) {
        auto* const copy = new_copy();
        detail::copy_bytes(piece, copy);
        at = copy;
      }
      failure_([&] {
        check("MPI_Isend", MPI_Isend(at, withheld ? 0 : static_cast<int>(piece.size()), MPI_BYTE, peer, 0, comm_,
                                     &requests_.back()));
      });
    });
  }

  /// Whether all messages have ended. @throws communication_error  once they have
  bool test() {
    const request_errors_returned while_testing;
    for (; ended_ < requests_.size(); ++ended_) {
      if (requests_[ended_] == MPI_REQUEST_NULL) continue;
      MPI_Status status;
      int code = MPI_SUCCESS;
      if (!has_ended(requests_[ended_], code, &status)) return false;
      finish(ended_, "MPI_Test", code, status);
    }
    ended_exchange_.report([&] { failure_.rethrow(); });
    return true;
  }

  /// @throws communication_error
  /// @throws timeout_error  a message did not come in time
  void wait() {
    const request_errors_returned while_waiting;
    const bool is_limited = waiting_ && waiting_->is_limited();
    for (; ended_ < requests_.size(); ++ended_) {
      if (requests_[ended_] == MPI_REQUEST_NULL) continue;
      MPI_Status status;
      int code = MPI_SUCCESS;
      if (!is_limited) {
        code = MPI_Wait(&requests_[ended_], &status);
      } else if (!waiting_->until([&] { return has_ended(requests_[ended_], code, &status); })) {
        give_up();
        break;
      }
      finish(ended_, "MPI_Wait", code, status);
    }
    ended_exchange_.report([&] { failure_.rethrow(); });
  }

  /// Calls visit(piece) for every piece that arrives whole, in the order of arrival. Blocks until all have arrived or an
  /// error has occurred. To be followed by test() or wait().
  template <class Visitor>
  void for_each_arrival(Visitor&& visit) {
    const request_errors_returned while_waiting;
    for (std::size_t left = expected_.size(); left > 0 && !failure_.failed(); --left) {
      int index = MPI_UNDEFINED;
      MPI_Status status;
      const auto count = static_cast<int>(expected_.size());
      int code = MPI_SUCCESS;
      if (!waiting_->is_limited()) {
        code = MPI_Waitany(count, requests_.data(), &index, &status);
      } else if (!waiting_->until([&] {
                   int flag = 0;
                   code = MPI_Testany(count, requests_.data(), &index, &flag, &status);
                   return code != MPI_SUCCESS || flag;
                 })) {
        return give_up();
      }
      if (index == MPI_UNDEFINED) return failure_([&] { check("MPI_Waitany", code); });
      const auto which = static_cast<std::size_t>(index);
      finish(which, "MPI_Waitany", code, status);
      if (!failure_.failed()) visit(expected_[which].buffer);
    }
  }

 private:
  struct expectation {
    int peer;
    std::span<std::byte> buffer;
    std::byte* copy;  // where it arrives; null: in the buffer
  };

  // Short messages may lie on a caller's stack. While there is a timeout, they are sent from, and received in, memory that
  // can be left to MPI.
  static constexpr std::size_t short_message = 64;  // bytes
  using short_copy = std::array<std::byte, short_message>;
  bool needs_copy(std::span<const std::byte> piece) const {
    return waiting_->is_limited() && !piece.empty() && piece.size() <= short_message;
  }
  std::byte* new_copy() { return copies_.emplace_back().data(); }

  /// Takes back what MPI lets be taken back, mostly all that has not begun to arrive, and leaves the rest to it.
  void give_up() {
    while (ended_ < requests_.size() && requests_[ended_] == MPI_REQUEST_NULL)
      ++ended_;  // not that of for_each_arrival
    const auto late = ended_ < expected_.size() ? expected_[ended_].peer : peers_[ended_ - expected_.size()];
    for (std::size_t i = ended_; i < expected_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL || MPI_Cancel(&requests_[i]) != MPI_SUCCESS) continue;
      int code = MPI_SUCCESS;
      MPI_Status status;
      for (int turns = 0; turns < 100 && !has_ended(requests_[i], code, &status);) ++turns;
    }
    new (std::nothrow) std::vector<short_copy>(std::move(copies_));
    ended_ = requests_.size();
    waiting_->give_up(late);
    failure_([&] { waiting_->throw_error(); });
  }

  /// Keeps what was wrong with a request that has ended, if anything was.
  void finish(std::size_t which, const char* call, int code, const MPI_Status& status) {
    requests_[which] = MPI_REQUEST_NULL;  // after an error, too, where MPI libraries differ
    failure_([&] {
      if (which >= expected_.size()) return check(call, code);
      const auto& [peer, buffer, copy] = expected_[which];
      const auto expected = static_cast<int>(buffer.size());
      if (is_truncation(code))
        throw unexpected_size(peer, detail::joined({"more than the expected ", detail::counted(expected, "byte")}));
      check(call, code);
      int received = 0;
      check("MPI_Get_count", MPI_Get_count(&status, MPI_BYTE, &received));
      if (received != expected)
        throw unexpected_size(
            peer, detail::joined({detail::counted(received, "byte"), " instead of the expected ", expected}));
      if (copy) detail::copy_bytes({copy, buffer.size()}, buffer.data());
    });
  }
  static bool is_truncation(int code) {
    int error_class = MPI_SUCCESS;
    return code != MPI_SUCCESS && MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
  }
  communication_error unexpected_size(int peer, const std::string& what) const {
    return communication_error({"adasum::mpi_communicator: rank ", rank_, ": rank ", peer, " sent ", what});
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  waiting* waiting_ = nullptr;
  deferred_error failure_;
  ended_exchange ended_exchange_;
  std::size_t ended_ = 0;              // the requests before this one have ended
  std::vector<MPI_Request> requests_;  // those of `expected_`, then those of what is sent; null once they have ended
  std::vector<expectation> expected_;
  std::vector<int> peers_;  // of what is sent
  std::vector<short_copy> copies_;
};

}  // namespace adasum::detail::mpi
