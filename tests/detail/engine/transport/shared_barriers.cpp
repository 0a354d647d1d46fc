// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/communicators/threads.hpp>
#include <adasum/core/error.hpp>
#include <adasum/detail/engine/transport/shared_barriers.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/post_office.hpp"
#include "support/ranks.hpp"

namespace test_of_detail_engine_transport_shared_barriers {

/// Meetings of many ranks that are threads.

using namespace adasum;
using namespace adasum::test;
using detail::barrier_pattern;
using detail::shared_sizes;
using detail::time_limit;

namespace {

using blocks = detail::shared_memory_layout<thread_communicator::memory>;

struct rank_in_memory {
  explicit rank_in_memory(const thread_communicator& comm, std::size_t radix = detail::barrier_radix,
                          std::chrono::duration<double> timeout = patience)
      : access(comm.share(blocks::bytes_for(sizes, static_cast<std::size_t>(comm.size()))), comm.rank(), sizes, 1,
               timeout) {
    std::vector<std::size_t> ranks(static_cast<std::size_t>(comm.size()));
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    all = barrier_pattern(ranks, static_cast<std::size_t>(comm.rank()), radix);
  }

  void meet(bool block, time_limit limit = time_limit::always) {
    access.arrive(all);
    go_on(block, limit);
  }
  void go_on(bool block, time_limit limit = time_limit::always) {
    do await(block, limit);
    while (access.next_round());
  }
  void await(bool block, time_limit limit = time_limit::always) {
    if (block) return access.await_all(limit);
    while (!access.all_arrived()) std::this_thread::yield();
  }

  static constexpr shared_sizes sizes{.sums = 3, .rounds = 8};
  detail::shared_barriers<thread_communicator::memory> access;
  barrier_pattern all;
};

const std::vector<int> sizes{2, 3, 8, 9, 24, 64, 96};

}  // namespace

TEST_CASE("nobody leaves a barrier before all have come") {
  for (const int size : sizes)
    for (const std::size_t radix : {2u, 8u})
      for (const bool block : {true, false}) {
        CAPTURE(size);
        CAPTURE(radix);
        CAPTURE(block);
        constexpr int runs = 2;
        constexpr std::size_t barriers = 6;
        std::vector<std::atomic<int>> come(runs * barriers);
        const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
          rank_in_memory rank(comm, radix);
          bool all_were_there = true;
          for (std::size_t run = 0; run < runs; ++run) {
            rank.access.begin_run();
            for (std::size_t i = 0; i < barriers; ++i) {
              auto& here = come[run * barriers + i];
              ++here;
              rank.meet(block);
              all_were_there = all_were_there && here == size;
            }
            rank.access.end_run();
          }
          return all_were_there;
        }));
        for (const bool one : ranks) CHECK(one);
      }
}

TEST_CASE("sums one after another: right, with the same bits on all ranks, whoever is ahead") {
  for (const int size : sizes)
    for (const std::size_t radix : {2u, 4u, 8u}) {
      CAPTURE(size);
      CAPTURE(radix);
      const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
        rank_in_memory rank(comm, radix);
        std::vector<double> found;
        for (int run = 0; run < 3; ++run) {
          rank.access.begin_run();
          for (int i = 0; i < 7; ++i) {
            const double mine = 1.0 / (1 + comm.rank() + run);
            std::vector<double> values{mine, comm.rank() + 100.0 * i, 1};
            rank.access.contribute(values, rank.all);
            do rank.await(i % 2 == 0);
            while (rank.access.add_round(values));
            found.insert(found.end(), values.begin(), values.end());
          }
          rank.meet(true);
          rank.access.end_run();
        }
        return found;
      }));
      for (const auto& one : ranks) CHECK(same_bits(one, ranks.front()));
      for (std::size_t sum = 0; sum < 21; ++sum) {
        const double i = static_cast<double>(sum % 7);
        CHECK(ranks.front()[3 * sum + 1] == size * (size - 1) / 2.0 + 100.0 * i * size);
        CHECK(ranks.front()[3 * sum + 2] == size);
      }
    }
}

TEST_CASE("one that is late is named by all, also by those that do not hear from it") {
  constexpr int size = 24;
  for (const int late : {0, 13, 23}) {
    CAPTURE(late);
    std::atomic<int> come = 0, over = 0;
    const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
      rank_in_memory rank(comm, detail::barrier_radix, std::chrono::milliseconds(50));
      rank.access.begin_run();
      if (comm.rank() == late) {
        while (over < size - 1) std::this_thread::yield();
        rank.access.fail();
        return -1;
      }
      int named = -1;
      rank.access.arrive(rank.all);
      for (++come; come < size - 1;) std::this_thread::yield();
      try {
        rank.go_on(true);
      } catch (const timeout_error& error) {
        named = error.rank();
      } catch (const communication_error&) {  // heard from another one whose time was over
        named = late;
      }
      ++over;
      rank.access.fail();
      return named;
    });
    for (int rank = 0; rank < size; ++rank)
      if (rank != late) CHECK(ranks[static_cast<std::size_t>(rank)].value == late);
  }
}

TEST_CASE("one that fails before a barrier, or between its rounds, lets nobody out of it or wait") {
  constexpr int size = 24;  // two rounds
  for (const bool block : {true, false})
    for (const bool has_come : {false, true}) {
      CAPTURE(block);
      CAPTURE(has_come);
      const auto ranks = results_of(on_ranks(size, [&](const thread_communicator& comm) {
        rank_in_memory rank(comm);
        bool failed = false;
        for (int run = 0; run < 3; ++run) {
          rank.access.begin_run();
          bool fails = comm.rank() == 5 && run == 1;
          try {
            rank.meet(block);
            if (fails && has_come) rank.access.arrive(rank.all);  // and does not begin the second round
            if (!fails) rank.meet(block);
            if (!fails) rank.meet(block);
          } catch (const communication_error&) {
            fails = true;
          }
          if (fails) {
            rank.access.fail();
            rank.access.await_left_alone();
            failed = true;
          } else {
            rank.access.end_run();
            if (run == 1) return false;
          }
        }
        return failed;
      }));
      for (const bool failed : ranks) CHECK(failed);
    }
}

TEST_CASE(
    "a limit that begins once all have begun: a rank that then does not go on is late, one that computes is not") {
  constexpr int size = 12;
  const auto texts_of_others = [](bool first_begins) {
    const std::chrono::duration<double> limit(first_begins ? 0.05 : 1);
    std::atomic<bool> over = false;
    const auto ranks = on_ranks(size, [&](const thread_communicator& comm) {
      rank_in_memory rank(comm, detail::barrier_radix, limit);
      rank.access.begin_run();
      if (comm.rank() == 7) {
        if (first_begins) rank.access.arrive(rank.all);  // and does not begin the second round
        while (!over && first_begins) std::this_thread::yield();
        if (!first_begins) std::this_thread::sleep_for(1.3 * limit);
        if (!first_begins) rank.meet(true, time_limit::once_all_have_begun);
        first_begins ? rank.access.fail() : rank.access.end_run();
        return std::string();
      }
      std::string text;
      try {
        rank.meet(true, time_limit::once_all_have_begun);
      } catch (const communication_error& error) {
        text = error.what();
      }
      if (!text.empty()) over = true;
      text.empty() ? rank.access.end_run() : rank.access.fail();
      return text;
    });
    std::string all;
    for (const auto& rank : ranks) all += rank.value.value_or("an exception");
    return all;
  };
  CHECK(texts_of_others(true).find("did not come within 0.05") != std::string::npos);
  CHECK(texts_of_others(false).empty());
}

namespace {

/// Of two ranks, played by one thread.
struct counting_window {
  static constexpr bool same_address_space = true;
  std::shared_ptr<post_office::memory> block;
  std::vector<int> both{0, 1};
  int* times;
  std::span<const int> ranks() const { return both; }
  std::byte* of(std::size_t i) const { return block->of(i); }
  void progress() const { ++*times; }
};

}  // namespace

TEST_CASE("whoever asks whether it is left alone lets messages move meanwhile") {
  using access = detail::shared_barriers<counting_window>;
  constexpr shared_sizes needed{.sums = 1};
  const auto block = post_office(2).share(0, detail::shared_memory_layout<counting_window>::bytes_for(needed, 2));
  int times = 0;
  access failing({block, {0, 1}, &times}, 0, needed, 1, patience),
      at_work({block, {0, 1}, &times}, 1, needed, 1, patience);
  const std::vector<std::size_t> both{0, 1};
  const std::vector<detail::barrier_pattern> barriers{{both, 0, detail::barrier_radix},
                                                      {both, 1, detail::barrier_radix}};
  failing.begin_run();
  failing.arrive(barriers[0]);
  at_work.begin_run();
  at_work.arrive(barriers[1]);
  failing.fail();
  CHECK_FALSE(failing.is_left_alone());
  CHECK(times == 1);
  at_work.end_run();
  CHECK(failing.is_left_alone());
}

}  // namespace test_of_detail_engine_transport_shared_barriers
