// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../../core/deferred_error.hpp"
#include "../../core/ended_exchange.hpp"
#include "../../core/error.hpp"
#include "error.hpp"
#include "error_handlers.hpp"

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

  void begin(MPI_Comm comm, int rank) {
    comm_ = comm;
    rank_ = rank;
    failure_ = {};
    ended_ = 0;
    requests_.clear();
    expected_.clear();
  }

  /// Memory for the requests of so many messages, received and sent: the others wait for what one of them would send.
  /// @throws std::bad_alloc  nothing has been posted
  void reserve(std::size_t receives, std::size_t sends) {
    requests_.reserve(receives + sends);
    expected_.reserve(receives);
  }

  void receive(int peer, std::span<std::byte> buffer, std::size_t piece_limit) {
    for_each_piece(buffer, piece_limit, [&](std::span<std::byte> piece) {
      requests_.push_back(MPI_REQUEST_NULL);
      expected_.push_back({peer, piece});
      failure_([&] {
        check("MPI_Irecv",
              MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, peer, 0, comm_, &requests_.back()));
      });
    });
  }

  /// @param withheld  send the same number of pieces, all of them empty: this rank has failed
  void send(int peer, std::span<const std::byte> message, std::size_t piece_limit, bool withheld) {
    for_each_piece(message, piece_limit, [&](std::span<const std::byte> piece) {
      requests_.push_back(MPI_REQUEST_NULL);
      failure_([&] {
        check("MPI_Isend", MPI_Isend(piece.data(), withheld ? 0 : static_cast<int>(piece.size()), MPI_BYTE, peer, 0,
                                     comm_, &requests_.back()));
      });
    });
  }

  /// Whether all messages have ended. @throws communication_error  once they have
  bool test() {
    const request_errors_returned while_testing;
    for (; ended_ < requests_.size(); ++ended_) {
      if (requests_[ended_] == MPI_REQUEST_NULL) continue;
      int has_ended = 0;
      MPI_Status status;
      const int code = MPI_Test(&requests_[ended_], &has_ended, &status);
      if (code == MPI_SUCCESS && !has_ended) return false;
      finish(ended_, "MPI_Test", code, status);
    }
    ended_exchange_.report([&] { failure_.rethrow(); });
    return true;
  }

  /// @throws communication_error
  void wait() {
    const request_errors_returned while_waiting;
    for (; ended_ < requests_.size(); ++ended_) {
      if (requests_[ended_] == MPI_REQUEST_NULL) continue;
      MPI_Status status;
      const int code = MPI_Wait(&requests_[ended_], &status);
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
      const int code = MPI_Waitany(static_cast<int>(expected_.size()), requests_.data(), &index, &status);
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
  };

  /// Keeps what was wrong with a request that has ended, if anything was.
  void finish(std::size_t which, const char* call, int code, const MPI_Status& status) {
    requests_[which] = MPI_REQUEST_NULL;  // after an error, too, where MPI libraries differ
    failure_([&] {
      if (which >= expected_.size()) return check(call, code);
      const auto& [peer, buffer] = expected_[which];
      const auto expected = static_cast<int>(buffer.size());
      if (is_truncation(code)) throw unexpected_size(peer, "more than the " + std::to_string(expected) + " bytes that");
      check(call, code);
      int received = 0;
      check("MPI_Get_count", MPI_Get_count(&status, MPI_BYTE, &received));
      if (received != expected)
        throw unexpected_size(peer, std::to_string(received) + " bytes where " + std::to_string(expected));
    });
  }
  static bool is_truncation(int code) {
    int error_class = MPI_SUCCESS;
    return code != MPI_SUCCESS && MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
  }
  communication_error unexpected_size(int peer, const std::string& what) const {
    return communication_error("adasum::mpi_communicator: rank " + std::to_string(rank_) + ": rank " +
                               std::to_string(peer) + " sent " + what + " were expected");
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  deferred_error failure_;
  ended_exchange ended_exchange_;
  std::size_t ended_ = 0;              // the requests before this one have ended
  std::vector<MPI_Request> requests_;  // those of `expected_`, then those of what is sent; null once they have ended
  std::vector<expectation> expected_;
};

}  // namespace adasum::detail::mpi
