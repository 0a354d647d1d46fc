// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <adasum/communicators/mpi.hpp>
#include <adasum/exec/serial.hpp>

#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_pending {

/// Messages, blocking and posted, and what becomes of wrong ones.

using namespace adasum::test;
using adasum::incoming;
using adasum::outgoing;

namespace {

const adasum::serial_space space;

template <class T, std::size_t N>
auto bytes_of(std::array<T, N>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Makes an exchange, blocking or posted and tested until it ends. Returns the text of the communication_error.
std::string message_of(const adasum::mpi_communicator& comm, bool posted, std::span<const outgoing> out,
                       std::span<const incoming> in) {
  try {
    if (!posted) {
      comm.exchange(space, out, in);
    } else {
      adasum::mpi_communicator::pending exchange;
      comm.post(space, out, in, exchange);
      while (!exchange.test()) std::this_thread::yield();
    }
  } catch (const adasum::communication_error& error) {
    return error.what();
  }
  return {};
}

bool world_has(MPI_Errhandler wanted) {
  MPI_Errhandler handler{};
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  const bool same = handler == wanted;
  MPI_Errhandler_free(&handler);
  return same;
}

}  // namespace

TEST_CASE("messages to both neighbours, in one piece and in many, keep their order; empty ones count") {
  const int next = (world_rank() + 1) % world_size(), previous = (world_rank() + world_size() - 1) % world_size();
  if (world_size() < 2) return;
  for (const std::size_t piece_limit : {std::size_t{1}, std::size_t{12}, adasum::mpi_communicator::default_piece_limit})
    for (const bool posted : {false, true}) {
      CAPTURE(piece_limit);
      CAPTURE(posted);
      const adasum::mpi_communicator comm{MPI_COMM_WORLD, piece_limit};
      std::array<std::int32_t, 4> mine{world_rank(), 2, 3, 4}, theirs{};
      const std::array out{outgoing{next, bytes_of(mine).first(4)}, outgoing{next, {}},
                           outgoing{next, bytes_of(mine).subspan(4)}};
      const std::array in{incoming{previous, bytes_of(theirs).first(4)}, incoming{previous, {}},
                          incoming{previous, bytes_of(theirs).subspan(4)}};
      CHECK(message_of(comm, posted, out, in) == "");
      CHECK(theirs == std::array<std::int32_t, 4>{previous, 2, 3, 4});
    }
}

TEST_CASE("a message that is withheld, too short or too long is an error that says so, and MPI's errors stay fatal") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  struct mistake {
    std::size_t bytes;
    bool withheld;
    const char* text;
  };
  for (const auto& made : {mistake{8, true, "rank 0 sent 0 bytes instead of the expected 8"},
                           mistake{4, false, "rank 0 sent 4 bytes instead of the expected 8"},
                           mistake{16, false, "rank 0 sent more than the expected 8 bytes"}})
    for (const bool posted : {false, true}) {
      CAPTURE(made.text);
      CAPTURE(posted);
      std::array<std::int32_t, 4> wrong{1, 2, 3, 4}, received{}, right{5, 6, 7, 8}, also_received{};
      if (comm.rank() == 0) {
        const outgoing first{1, bytes_of(wrong).first(made.bytes), adasum::memory_kind::host, made.withheld};
        const outgoing second{1, bytes_of(right)};
        CHECK(message_of(comm, posted, std::span(&first, 1), {}) == "");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the first is found to be wrong before the second
        CHECK(message_of(comm, posted, std::span(&second, 1), {}) == "");
      }
      if (comm.rank() == 1) {
        const std::array in{incoming{0, bytes_of(received).first(8)}, incoming{0, bytes_of(also_received)}};
        CHECK(message_of(comm, posted, {}, in) == std::string("adasum::mpi_communicator: rank 1: ") + made.text);
        CHECK(also_received == right);  // the others have ended when the error is reported
        CHECK(received[2] == 0);        // and nothing lies behind the buffer
      }
      CHECK(world_has(MPI_ERRORS_ARE_FATAL));
    }
}

TEST_CASE("an object is used for one exchange after another, also after one that failed") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  if (comm.rank() > 1) return;
  const int peer = 1 - comm.rank();
  adasum::mpi_communicator::pending exchange;
  for (const std::size_t sent : {std::size_t{16}, std::size_t{8}, std::size_t{4}, std::size_t{8}}) {
    std::array<std::int32_t, 4> mine{comm.rank(), 1, 2, 3}, theirs{};
    const outgoing out{peer, bytes_of(mine).first(sent)};
    const incoming in{peer, bytes_of(theirs).first(8)};
    comm.post(space, std::span(&out, 1), std::span(&in, 1), exchange);
    if (sent == 8) {
      CHECK_NOTHROW(exchange.wait());
      CHECK(theirs[0] == peer);
      CHECK(exchange.test());  // still ended
    } else {
      CHECK_THROWS_AS(exchange.wait(), adasum::communication_error);
    }
  }
}

TEST_CASE("test does not wait for a message that has not been sent") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  std::array<std::int32_t, 1> value{7}, received{};
  adasum::mpi_communicator::pending exchange;
  if (comm.rank() == 1) {
    const incoming in{0, bytes_of(received)};
    comm.post(space, {}, std::span(&in, 1), exchange);
    CHECK_FALSE(exchange.test());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm.rank() == 0) {
    const outgoing out{1, bytes_of(value)};
    comm.exchange(space, std::span(&out, 1), {});
  }
  if (comm.rank() == 1) {
    exchange.wait();
    CHECK(received == value);
  }
}

TEST_CASE("an error of MPI names the call and carries MPI's own text") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  int value = 0;
  const outgoing to_nobody{world_size() + 7, std::as_bytes(std::span(&value, 1))};
  try {
    comm.exchange(space, std::span(&to_nobody, 1), {});
    FAIL_CHECK("a message to a rank that does not exist was sent");
  } catch (const adasum::mpi_error& e) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(e.code(), text.data(), &length);
    CHECK(std::string(e.call()) == "MPI_Isend");
    CHECK(e.what() == "adasum: MPI_Isend failed: " + std::string(text.data(), static_cast<std::size_t>(length)));
    CHECK(length > 0);
    int error_class = 0;
    MPI_Error_class(e.code(), &error_class);
    CHECK(error_class == MPI_ERR_RANK);
  }
}

}  // namespace test_of_communicators_mpi_pending
