// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/message.hpp"

namespace adasum {

/// An MPI call failed.
class mpi_error : public communication_error {
 public:
  mpi_error(const char* call, int code) : communication_error(describe(call, code)), call_(call), code_(code) {}

  /// The name of the function that failed, such as "MPI_Comm_dup".
  const char* call() const { return call_; }
  /// The error code that it returned.
  int code() const { return code_; }

 private:
  static std::string describe(const char* call, int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
    return std::string("adasum: ") + call + " failed: " + std::string(text.data(), static_cast<std::size_t>(length));
  }

  const char* call_;
  int code_;
};

/// The ranks of an MPI communicator. It is duplicated once, so that no message of this library meets one of the caller's,
/// and errors come back as exceptions whatever error handler the caller's communicator has. Copies share the duplicate,
/// which is freed with the last of them, unless MPI has been finalised by then.
///
/// As with any MPI communicator, all ranks make the same collective calls in the same order, from one thread at a time.
class mpi_communicator {
 public:
  /// Messages are cut into pieces of at most so many bytes: MPI counts in int.
  static constexpr std::size_t default_piece_limit = std::size_t{1} << 30;

  /// Collective over `comm`; blocks as MPI_Comm_dup does.
  /// @throws bad_input  MPI is not initialised or already finalised; a null or inter-communicator
  /// @throws mpi_error  naming the call that failed
  explicit mpi_communicator(MPI_Comm comm, std::size_t piece_limit = default_piece_limit)
      : state_(std::make_shared<state>(comm, piece_limit)) {}

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  /// The duplicate that carries the messages.
  MPI_Comm native() const { return state_->comm; }

  /// Blocks until every message has been sent and received. See the concept communicator_for.
  template <class Space>
  void exchange(const Space&, std::span<const outgoing> out, std::span<const incoming> in) const {
    state_->exchange(out, in);
  }

 private:
  static void check(const char* call, int code) {
    if (code != MPI_SUCCESS) throw mpi_error(call, code);
  }

  struct state {
    state(MPI_Comm original, std::size_t limit) : piece_limit(limit) {
      int flag = 0;
      check("MPI_Initialized", MPI_Initialized(&flag));
      if (!flag) throw bad_input("adasum::mpi_communicator: MPI is not initialised (call MPI_Init first)");
      check("MPI_Finalized", MPI_Finalized(&flag));
      if (flag) throw bad_input("adasum::mpi_communicator: MPI is already finalised");
      if (original == MPI_COMM_NULL) throw bad_input("adasum::mpi_communicator: the communicator is MPI_COMM_NULL");
      check("MPI_Comm_test_inter", MPI_Comm_test_inter(original, &flag));
      if (flag) throw bad_input("adasum::mpi_communicator: the communicator is an inter-communicator");
      if (piece_limit == 0 || piece_limit > default_piece_limit)
        throw bad_input("adasum::mpi_communicator: pieces of " + std::to_string(piece_limit) + " bytes; 1 to " +
                        std::to_string(default_piece_limit) + " are possible");
      check("MPI_Comm_dup", MPI_Comm_dup(original, &comm));
      check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
      check("MPI_Comm_rank", MPI_Comm_rank(comm, &rank));
      check("MPI_Comm_size", MPI_Comm_size(comm, &size));
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      int finalised = 0;
      if (comm != MPI_COMM_NULL && MPI_Finalized(&finalised) == MPI_SUCCESS && !finalised) MPI_Comm_free(&comm);
    }

    /// Receives stand first among the requests. Pieces of one message follow each other; MPI keeps their order.
    void exchange(std::span<const outgoing> out, std::span<const incoming> in) {
      requests.clear();
      expected.clear();
      const char* call = "MPI_Irecv";
      int code = MPI_SUCCESS;
      for (const auto& room : in)
        for_each_piece(room.bytes, [&](std::byte* at, int bytes) {
          if (code != MPI_SUCCESS) return;
          requests.push_back(MPI_REQUEST_NULL);
          expected.push_back({room.peer, bytes});
          code = MPI_Irecv(at, bytes, MPI_BYTE, room.peer, tag, comm, &requests.back());
        });
      for (const auto& message : out)
        for_each_piece(message.bytes, [&](const std::byte* at, int bytes) {
          if (code != MPI_SUCCESS) return;
          call = "MPI_Isend";
          requests.push_back(MPI_REQUEST_NULL);
          code = MPI_Isend(at, message.withheld ? 0 : bytes, MPI_BYTE, message.peer, tag, comm, &requests.back());
        });
      statuses.resize(requests.size());
      const int waited = MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
      check(call, code);
      require_complete(waited);
    }

    void require_complete(int waited) const {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (waited == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_SUCCESS &&
            statuses[i].MPI_ERROR != MPI_ERR_PENDING)
          throw mpi_error("MPI_Waitall", statuses[i].MPI_ERROR);
        if (i >= expected.size()) continue;
        int bytes = 0;
        check("MPI_Get_count", MPI_Get_count(&statuses[i], MPI_BYTE, &bytes));
        if (bytes != expected[i].bytes)
          throw communication_error("adasum::mpi_communicator: rank " + std::to_string(rank) + ": rank " +
                                    std::to_string(expected[i].peer) + " sent " + std::to_string(bytes) +
                                    " bytes where " + std::to_string(expected[i].bytes) + " were expected");
      }
      check("MPI_Waitall", waited);
    }

    template <class Byte, class Visitor>
    void for_each_piece(std::span<Byte> bytes, Visitor&& visit) const {
      std::size_t done = 0;
      do {
        const auto count = std::min(piece_limit, bytes.size() - done);
        visit(bytes.data() + done, static_cast<int>(count));
        done += count;
      } while (done < bytes.size());
    }

    struct expectation {
      int peer;
      int bytes;
    };

    static constexpr int tag = 0;
    std::size_t piece_limit;
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    // Kept between calls, so that an exchange allocates nothing once it has grown to its size.
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    std::vector<expectation> expected;
  };

  std::shared_ptr<state> state_;
};

}  // namespace adasum
