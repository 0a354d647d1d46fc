// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/error.hpp>
#include <adasum/detail/engine/transport/shared_memory.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/schedules/all_to_all.hpp>
#include <adasum/schedules/recursive_doubling.hpp>
#include <adasum/schedules/recursive_halving.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/driven_transport.hpp"
#include "support/minimal_types.hpp"
#include "support/ranks.hpp"

namespace test_of_detail_engine_transport_shared_memory {

/// The transport in shared memory, driven through one stage by 2 or 3 ranks that are threads: of a communicator whose
/// ranks reach each other's addresses, and of one whose ranks share one block only, as processes do.

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space space;
using sharing_block = minimal_sharing_communicator<false>;

stage one_stage(int rank, int size, std::size_t length, bool published) {
  auto one = schedules::all_to_all{}.stages(rank, size, {length, 4, 1, false}).front();
  if (published) {
    one.parts.assign(one.survivors, one.held);
    one.sum_over = {rank};
    one.published = true;
  }
  return one;
}

template <class Comm>
struct memory_of_rank {
  memory_of_rank(const Comm& comm, std::size_t length, bool published, std::chrono::duration<double> timeout = patience)
      : report(empty_report(comm.size())),
        by(detail::ref_to_space<float>(space), detail::ref_to_communicator(space, comm), length, published, {.sums = 4},
           1, timeout),
        by_message(detail::ref_to_space<float>(space), detail::ref_to_communicator(space, comm), wire_format::same, {},
                   report),
        bound(bound_to(by, one_stage(comm.rank(), comm.size(), length, published),
                       static_cast<std::size_t>(comm.size()))),
        gradient(numbered<float>(comm.rank(), length)) {
    by.send_records_by(by_message);
  }

  void begin(bool posts) {
    by_message.begin_run(posts);
    bytes = by.begin_run(bytes_of(gradient));
    data = reinterpret_cast<float*>(bytes);
  }
  void bring(bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.bring(bound, bytes, turn); });
  }
  void sum(std::vector<double>& values, bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.sum(bound, values, turn); });
  }
  void deliver(bool block = true) {
    drive(by, block, [&](std::size_t turn) { return by.deliver(bound, bytes, turn); });
  }
  void withdraw() {
    by_message.withdraw();
    by.withdraw();
    drive(by, true, [&](std::size_t turn) { return turn == 0 ? by.leave() : detail::progress::done; });
  }
  const float* vector(std::size_t i) const { return elements_of<float>(by.vector(bound, i, bytes)); }

  detail::report_writer report;
  detail::shared_memory by;
  detail::messages by_message;
  detail::bound_stage bound;
  std::vector<float> gradient;
  std::byte* bytes = nullptr;  // where it works on the gradient
  float* data = nullptr;       // the same, as elements
};

template <class Comm>
std::vector<Comm> communicators(int size) {
  if constexpr (std::is_same_v<Comm, thread_communicator>)
    return thread_communicator::group(size);
  else
    return group_of<Comm>(size);
}

}  // namespace

TEST_CASE("it carries a stage of exactly the ranks that share memory, in slices or published, or of a group of them") {
  const auto right = results_of(on_ranks(3, [](const thread_communicator& comm) {
    const memory_of_rank<thread_communicator> sliced(comm, 12, false), published(comm, 12, true);
    const auto slices = one_stage(comm.rank(), 3, 12, false), whole = one_stage(comm.rank(), 3, 12, true);
    auto of_two = slices, waiting = slices, unpublished = whole;
    of_two.members = {0, 1};
    waiting.survivors = 2;
    waiting.parts = {{0, 6}, {6, 12}};
    waiting.sum_over = {0, 1};
    auto sole = waiting;
    sole.survivors = 1;
    sole.parts = {{0, 12}};
    sole.sum_over = {0};
    unpublished.published = false;
    auto grouped = schedules::recursive_halving{}.stages(comm.rank(), 4, {12, 4, 1, true}).front();
    grouped.grouped = comm.rank() < 2;  // with rank 0 or 1; rank 2 would meet rank 3, which shares no memory
    return sliced.by.carries(slices) && sliced.by.adds(slices) &&       //
           published.by.carries(whole) && !published.by.adds(whole) &&  // nothing to add
           sliced.by.carries(waiting) && sliced.by.adds(waiting) &&     // among those that go on
           sliced.by.carries(sole) && !sliced.by.adds(sole) &&          //
           !sliced.by.carries(of_two) && !sliced.by.carries(unpublished) &&
           sliced.by.carries(grouped) == grouped.grouped && sliced.by.adds(grouped) == grouped.grouped;
  }));
  for (const bool one : right) CHECK(one);
}

TEST_CASE_TEMPLATE("slices: each rank reads all vectors where they lie, adds, and writes its slice into all", Comm,
                   thread_communicator, sharing_block) {
  for (const bool block : {true, false})
    for (const int which : {0, 1, 2, 3}) {
      const int size = 2 + which % 2;
      const bool own_part_stays = which > 1;  // in the caller's gradient
      CAPTURE(block);
      CAPTURE(which);
      constexpr std::size_t length = 10;
      const auto ranks = results_of(on_each(communicators<Comm>(size), [&](const Comm& comm) {
        memory_of_rank<Comm> rank(comm, length, false);
        const auto part = rank.bound.part();
        if (own_part_stays) rank.by.set_own_part(part);
        std::vector<double> values;
        bool right = true;
        for (int run = 0; run < 3; ++run) {
          rank.gradient = numbered<float>(comm.rank() + run, length);
          rank.begin(!block);
          rank.bring(block);
          right = right && (rank.data == rank.gradient.data()) == (own_part_stays || !rank.by.gradient());
          for (int i = 0; i < size; ++i)
            for (std::size_t x = 0; x < part.size(); ++x)
              right = right && rank.vector(static_cast<std::size_t>(i))[x] ==
                                   static_cast<float>(100 * (i + run)) + static_cast<float>(part.begin + x);
          values = {1.0 + comm.rank() + run, 0.5};
          rank.sum(values, block);
          right = right && values == std::vector{size * (size + 1) / 2.0 + run * size, size / 2.0};
          for (auto x = part.begin; x < part.end; ++x) rank.data[x] = static_cast<float>(run) - static_cast<float>(x);
          rank.deliver(block);
          rank.by.end_run();
          for (std::size_t x = 0; x < length; ++x)  // where the caller has its gradient, too
            right = right && rank.gradient[x] == static_cast<float>(run) - static_cast<float>(x);
        }
        return right && rank.by_message.bytes_sent() == 0;
      }));
      for (const bool right : ranks) CHECK(right);
    }
}

TEST_CASE("ranks that reach each other's addresses work on the caller's gradient; others on a copy, and back") {
  const auto in_place = results_of(on_ranks(2, [](const thread_communicator& comm) {
    memory_of_rank<thread_communicator> rank(comm, 8, false);
    rank.begin(false);
    rank.bring();
    return rank.data == rank.gradient.data() && rank.by.gradient() == nullptr;
  }));
  const auto copied = results_of(on_each(group_of<sharing_block>(2), [](const sharing_block& comm) {
    memory_of_rank<sharing_block> rank(comm, 8, false);
    rank.begin(false);
    rank.bring();
    return rank.bytes == rank.by.gradient() && rank.data != rank.gradient.data() && rank.data[3] == rank.gradient[3];
  }));
  for (const bool one : in_place) CHECK(one);
  for (const bool one : copied) CHECK(one);
}

TEST_CASE_TEMPLATE("published: copies of all vectors, whole; their owners may go on to write", Comm,
                   thread_communicator, sharing_block) {
  const auto ranks = results_of(on_each(communicators<Comm>(3), [](const Comm& comm) {
    memory_of_rank<Comm> rank(comm, 6, true);
    bool right = true;
    for (int run = 0; run < 4; ++run) {
      rank.gradient = numbered<float>(comm.rank() + run, 6);
      rank.begin(false);
      rank.bring();
      std::fill_n(rank.data, 6, -1.0f);  // the result, before others have read this rank's vector
      for (int i = 0; i < 3; ++i)
        if (i != comm.rank())
          for (std::size_t x = 0; x < 6; ++x)
            right = right && rank.vector(static_cast<std::size_t>(i))[x] ==
                                 static_cast<float>(100 * (i + run)) + static_cast<float>(x);
      rank.by.end_run();
      right = right && rank.gradient == std::vector<float>(6, -1);
    }
    return right;
  }));
  for (const bool right : ranks) CHECK(right);
}

TEST_CASE("sums one after another: a rank that is ahead leaves what one behind still reads") {
  std::atomic<bool> second_begun = false;
  const auto sums = results_of(on_ranks(2, [&](const thread_communicator& comm) {
    memory_of_rank<thread_communicator> rank(comm, 8, false);
    rank.begin(false);
    rank.bring();
    std::vector<double> first{comm.rank() == 0 ? 1.0 : 2.0}, second{30};
    rank.by.sum(rank.bound, first, 0);
    rank.by.arrived(true);
    if (comm.rank() == 0)
      while (!second_begun) std::this_thread::yield();  // all have come, but this rank has not read yet
    rank.by.sum(rank.bound, first, 1);
    rank.by.sum(rank.bound, second, 0);
    second_begun = true;
    rank.by.arrived(true);
    rank.by.sum(rank.bound, second, 1);
    rank.deliver();
    return std::vector{first[0], second[0]};
  }));
  for (const auto& found : sums) CHECK(found == std::vector<double>{3, 60});
}

TEST_CASE("what is delivered early is not copied again") {
  const auto ranks = results_of(on_ranks(2, [](const thread_communicator& comm) {
    memory_of_rank<thread_communicator> rank(comm, 8, false);
    const auto part = rank.bound.part();
    rank.begin(false);
    rank.bring();
    std::vector<double> values{1};
    rank.sum(values);
    for (auto x = part.begin; x < part.end; ++x) rank.data[x] = 5;
    rank.by.deliver_early(rank.bound, rank.bytes, {part.begin, part.begin + 2});
    rank.by.deliver_early(rank.bound, rank.bytes, {part.begin + 2, part.end});
    for (auto x = part.begin; x < part.end; ++x) rank.data[x] = 6;  // a copy made by deliver would be of these
    rank.deliver();
    const auto other = static_cast<std::size_t>(4 * (1 - comm.rank()));
    return std::vector(rank.gradient.begin() + static_cast<std::ptrdiff_t>(other),
                       rank.gradient.begin() + static_cast<std::ptrdiff_t>(other) + 4);
  }));
  for (const auto& one : ranks) CHECK(one == std::vector<float>(4, 5));
}

TEST_CASE("a rank that withdraws makes the others fail at the barrier, and is left alone") {
  for (const bool block : {true, false})
    for (int before = 0; before < 3; ++before) {  // so many verbs go well
      CAPTURE(block);
      CAPTURE(before);
      const auto ranks = on_ranks(3, [&](const thread_communicator& comm) {
        memory_of_rank<thread_communicator> rank(comm, 9, false);
        std::vector<double> values{1, 2};
        rank.begin(!block);
        try {
          for (int which = 0; which < 3; ++which) {
            if (comm.rank() == 1 && which == before) {
              rank.withdraw();
              return which;
            }
            if (which == 0) rank.bring(block);
            if (which == 1) rank.sum(values, block);
            if (which == 2) rank.deliver(block);
          }
        } catch (const communication_error&) {
          rank.withdraw();
          throw;
        }
        return 3;
      });
      CHECK(ranks[1].value == before);
      for (const std::size_t other : {0u, 2u}) {
        const auto text = ranks[other].message_of<communication_error>();
        REQUIRE_MESSAGE(text, ranks[other].description());
        CHECK(text->find("failed in this reduction") != std::string::npos);
      }
    }
}

TEST_CASE("processes: a rank that gave up waiting for another to leave it alone publishes nothing until it has") {
  std::atomic<int> stage = 0;
  const auto await = [&](int which) {
    while (stage < which) std::this_thread::yield();
  };
  const auto message_of = [](const auto& verb) -> std::string {
    try {
      verb();
    } catch (const communication_error& problem) {
      return problem.what();
    }
    return "";
  };
  const auto ranks = results_of(on_each(group_of<sharing_block>(2), [&](const sharing_block& comm) {
    memory_of_rank<sharing_block> rank(comm, 9, false, std::chrono::milliseconds(10));
    std::vector<double> values{1, 2};
    std::string first, second;
    rank.begin(false);
    rank.bring();
    if (comm.rank() == 0) {
      first = message_of([&] { rank.sum(values); });  // rank 1 is late: it still reads
      rank.withdraw();
      second = message_of([&] {
        rank.begin(false);
        rank.bring();
      });
      rank.withdraw();
      stage = 1;
    } else {
      await(1);
      first = message_of([&] { rank.sum(values); });
      rank.withdraw();
      second = message_of([&] {
        rank.begin(false);
        rank.bring();
      });
      rank.withdraw();
      stage = 2;
    }
    await(2);
    rank.begin(false);
    const auto third = message_of([&] { rank.bring(); });
    return std::vector{first, second, third};
  }));
  CHECK(ranks[0][0].find("rank 1 did not come within") != std::string::npos);
  CHECK(ranks[0][1] == "adasum: rank 1 is still at work in a reduction that failed");
  for (const std::size_t run : {0u, 1u})
    CHECK(ranks[1][run].find("rank 0 failed in this reduction") != std::string::npos);
  for (const auto& rank : ranks) CHECK(rank[2] == "");
}

TEST_CASE("a rank that failed is no reason to wait for one that is late, nor one that waits to stay") {
  std::atomic<int> done = 0;
  const auto ranks = results_of(on_ranks(3, [&](const thread_communicator& comm) {
    memory_of_rank<thread_communicator> rank(comm, 9, false);
    rank.begin(false);
    if (comm.rank() == 0)
      while (done < 2) std::this_thread::yield();  // later than the others, and first in their order
    bool failed = comm.rank() == 2;
    try {
      if (!failed) rank.bring();
    } catch (const communication_error&) {
      failed = true;
    }
    rank.withdraw();
    ++done;
    return failed;
  }));
  for (const bool failed : ranks) CHECK(failed);
}

TEST_CASE("ranks with different plans refuse each other at the first barrier") {
  const auto ranks = on_ranks(2, [](const thread_communicator& comm) {
    auto report = empty_report(2);
    detail::shared_memory by(detail::ref_to_space<float>(space), detail::ref_to_communicator(space, comm), 8, false,
                             {.sums = 4}, static_cast<std::uint64_t>(comm.rank()), patience);
    const auto bound = bound_to(by, one_stage(comm.rank(), 2, 8, false), 2);
    auto gradient = numbered<float>(comm.rank(), 8);
    by.begin_run(bytes_of(gradient));
    try {
      drive(by, true, [&](std::size_t turn) { return by.bring(bound, bytes_of(gradient), turn); });
    } catch (const communication_error&) {
      by.withdraw();
      by.leave();
      by.arrived(true);
      throw;
    }
    return true;
  });
  std::size_t found = 0;  // the other may hear first that this one failed
  for (const auto& rank : ranks) {
    const auto text = rank.message_of<communication_error>();
    REQUIRE_MESSAGE(text, rank.description());
    found += text->find("made a different plan") != std::string::npos;
  }
  CHECK(found >= 1);
}

}  // namespace test_of_detail_engine_transport_shared_memory
