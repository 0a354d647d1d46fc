// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>

#include "support/ranks.hpp"

namespace test_of_communicators_threads_group {

/// Messages between threads and the memory that they share; communicators that are empty.

using namespace adasum::test;
using adasum::incoming;
using adasum::outgoing;
using adasum::thread_communicator;

static_assert(adasum::posting_communicator<thread_communicator, adasum::serial_space>);
static_assert(adasum::shared_memory_communicator<thread_communicator>);

namespace {

const adasum::serial_space space;

template <class T>
auto bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Makes an exchange, blocking or posted and tested until it ends. Returns the text of the communication_error.
std::string message_of(const thread_communicator& comm, bool posted, std::span<const outgoing> out,
                       std::span<const incoming> in) {
  try {
    if (!posted) {
      comm.exchange(space, out, in);
    } else {
      thread_communicator::pending exchange;
      comm.post(space, out, in, exchange);
      while (!exchange.test()) std::this_thread::yield();
    }
  } catch (const adasum::communication_error& error) {
    return error.what();
  }
  return {};
}

void check_empty(const thread_communicator& comm) {
  CHECK_FALSE(comm);
  const auto is_empty = doctest::Contains("adasum::thread_communicator: this communicator is empty");
  CHECK_THROWS_WITH_AS(comm.rank(), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.size(), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.share(64), is_empty, adasum::bad_input);
  CHECK_THROWS_WITH_AS(comm.exchange(space, {}, {}), is_empty, adasum::bad_input);
  thread_communicator::pending nothing;
  CHECK_THROWS_WITH_AS(comm.post(space, {}, {}, nothing), is_empty, adasum::bad_input);
  CHECK(nothing.test());  // nothing has been posted, so nothing is in flight
}

}  // namespace

TEST_CASE("a group has at least one rank") {
  CHECK_THROWS_WITH_AS(thread_communicator::group(0),
                       "adasum::thread_communicator: a group needs at least one rank, not 0", adasum::bad_input);
}

TEST_CASE("an empty communicator can be made, copied and moved, but not used") {
  check_empty({});
  thread_communicator comm;
  comm = thread_communicator::group(1).front();
  CHECK(comm);
  CHECK(comm.size() == 1);
  const auto moved = std::move(comm);
  CHECK(moved.rank() == 0);
  check_empty(comm);  // NOLINT(bugprone-use-after-move): what is left is empty
}

TEST_CASE("messages between two ranks keep their order, empty ones included") {
  for (const bool posted : {false, true}) {
    const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
      const int peer = 1 - comm.rank();
      std::array<int, 2> mine{10 * comm.rank() + 1, 10 * comm.rank() + 2}, theirs{};
      const std::array out{outgoing{peer, bytes_of(mine[0])}, outgoing{peer, {}}, outgoing{peer, bytes_of(mine[1])}};
      const std::array in{incoming{peer, bytes_of(theirs[0])}, incoming{peer, {}}, incoming{peer, bytes_of(theirs[1])}};
      CHECK(message_of(comm, posted, out, in) == "");
      return theirs;
    });
    CHECK(*ranks[0].value == std::array{11, 12});
    CHECK(*ranks[1].value == std::array{1, 2});
  }
}

TEST_CASE("a withheld message and one of another size are errors that say the sizes") {
  for (const bool posted : {false, true})
    for (const std::size_t sent : {0u, 4u, 12u}) {
      const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
        std::array<std::int32_t, 3> values{1, 2, 3};
        const auto bytes = std::as_writable_bytes(std::span(values));
        const bool withheld = sent == 0;
        const outgoing out{1, bytes.first(withheld ? 8 : sent), adasum::memory_kind::host, withheld};
        const incoming in{0, bytes.first(8)};
        return comm.rank() == 0 ? message_of(comm, posted, std::span(&out, 1), {})
                                : message_of(comm, posted, {}, std::span(&in, 1));
      });
      CHECK(*ranks[0].value == "");
      CHECK(*ranks[1].value == "adasum::thread_communicator: rank 1: rank 0 sent " + std::to_string(sent) +
                                   " bytes instead of the expected 8");
    }
}

TEST_CASE("nobody waits for a rank that has left: neither for its message nor for it to take one") {
  for (const bool posted : {false, true}) {
    const auto ranks = on_ranks(3, [&](thread_communicator& handle) {
      const auto comm = std::move(handle);  // the last one: it goes when this function returns
      if (comm.rank() == 0) return std::string();
      int value = 1;
      const outgoing out{0, bytes_of(value)};
      const incoming in{0, bytes_of(value)};
      return comm.rank() == 1 ? message_of(comm, posted, std::span(&out, 1), {})
                              : message_of(comm, posted, {}, std::span(&in, 1));
    });
    for (const std::size_t rank : {1u, 2u})
      CHECK(*ranks[rank].value == "adasum::thread_communicator: rank " + std::to_string(rank) +
                                      ": rank 0 has left: its last thread_communicator has been destroyed");
  }
}

TEST_CASE("test does not wait for a message that has not been sent") {
  std::atomic<bool> tested = false;
  const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
    int value = comm.rank();
    if (comm.rank() == 0) {
      while (!tested) std::this_thread::yield();
      const outgoing out{1, bytes_of(value)};
      comm.exchange(space, std::span(&out, 1), {});
    } else {
      const incoming in{0, bytes_of(value)};
      thread_communicator::pending exchange;
      comm.post(space, {}, std::span(&in, 1), exchange);
      CHECK_FALSE(exchange.test());
      tested = true;
      exchange.wait();
    }
    return value;
  });
  CHECK(*ranks[1].value == 0);
}

TEST_CASE("memory that ranks share is zero, aligned, and each rank's own; the first to come says how much") {
  std::atomic<int> written = 0;
  const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
    const auto first = comm.share(100), second = comm.share(100), none = comm.share(0);
    CHECK(std::ranges::equal(first.ranks(), std::array{0, 1, 2}));
    CHECK(first.bytes() >= 100);
    CHECK(none.of(2) != nullptr);
    const auto mine = static_cast<std::size_t>(comm.rank());
    CHECK(reinterpret_cast<std::uintptr_t>(first.of(mine)) % 64 == 0);
    CHECK(std::ranges::count(std::span(first.of(mine), 100), std::byte{0}) == 100);
    std::ranges::fill(std::span(first.of(mine), 100), static_cast<std::byte>(comm.rank() + 1));
    ++written;
    while (written < 3) std::this_thread::yield();
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(std::ranges::count(std::span(first.of(rank), 100), static_cast<std::byte>(rank + 1)) == 100);
      CHECK(std::ranges::count(std::span(second.of(rank), 100), std::byte{0}) == 100);
      CHECK_FALSE(first.has_left(rank));
    }
    return 0;
  });
  for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
}

}  // namespace test_of_communicators_threads_group
