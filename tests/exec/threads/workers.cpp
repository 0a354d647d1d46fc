// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How jobs are shared out among threads, and what becomes of exceptions.
#include <doctest/doctest.h>

#include <adasum/core/error.hpp>
#include <adasum/exec/threads/space.hpp>
#include <adasum/exec/threads/workers.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#endif

#include "support/sizes.hpp"

namespace test_of_exec_threads_workers {

using namespace adasum::test;
using adasum::detail::threads_backend::processors;
using adasum::detail::threads_backend::workers;

TEST_CASE("every item is done once, whatever the number of threads and of items, job after job") {
  for (const std::size_t threads : sizes{1, 2, 3, 8}) {
    workers all(threads);
    CHECK(all.size() == threads);
    for (const std::size_t participants : sizes{1, 2, 3, 8})
      for (const std::size_t count : sizes{0, 1, 2, 7, 100, 3000}) {
        if (participants > threads) continue;
        CAPTURE(threads);
        CAPTURE(participants);
        CAPTURE(count);
        for (int job = 0; job < 20; ++job) {
          std::vector<int> done(count);  // no atomics: each item has one thread, and the caller sees what it wrote
          const workers::turn turn(all, true);
          REQUIRE(turn);
          all.for_each(participants, job % 2 == 0, count, [&](std::size_t i) { ++done[i]; });
          for (const int times : done) REQUIRE(times == 1);
        }
      }
  }
}

TEST_CASE("several threads work at one job") {
  workers all(4);
  const workers::turn turn(all, true);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> at_work = 0;
  std::atomic<bool> is_checked = false;
  // Each item waits for the others: one thread alone would wait for ever.
  all.for_each(4, true, 4, [&](std::size_t) {
    ++at_work;
    while (at_work < 4) std::this_thread::yield();
    if (std::this_thread::get_id() == caller) {
      CHECK(all.any_awake(4));
      is_checked = true;
    }
    while (!is_checked) std::this_thread::yield();
  });
  CHECK(at_work == 4);
}

TEST_CASE("workers fall asleep, are woken when that is asked for, and end while they sleep") {
  workers all(3);
  const workers::turn turn(all, true);
  CHECK(!all.any_awake(3));  // they have not been started
  const auto caller = std::this_thread::get_id();
  int jobs_of_the_caller_alone = 0;
  for (int job = 0; job < 10; ++job) {
    std::atomic<int> at_work = 0;
    all.for_each(3, true, 3, [&](std::size_t) {
      ++at_work;
      while (at_work < 3) std::this_thread::yield();
    });
    while (all.any_awake(3)) std::this_thread::yield();
    std::atomic<int> by_caller = 0, by_workers = 0;
    all.for_each(3, false, 20, [&](std::size_t) {
      ++(std::this_thread::get_id() == caller ? by_caller : by_workers);
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // whoever is woken comes in time for an item
    });
    CHECK(by_caller + by_workers == 20);
    if (by_workers == 0) ++jobs_of_the_caller_alone;
  }
  // Not of each job: a worker that is about to sleep looks once more, and may see one.
  CHECK(jobs_of_the_caller_alone > 0);
}

TEST_CASE("one caller at a time has the workers") {
  workers all(2);
  {
    const workers::turn first(all, true), second(all, true);
    CHECK(first);
    CHECK(!second);
  }
  const workers::turn unwanted(all, false);
  CHECK(!unwanted);
  const workers::turn next(all, true);
  CHECK(next);
}

TEST_CASE("an item that fails on a worker is done by the caller") {
  workers all(4);
  const workers::turn turn(all, true);
  const auto caller = std::this_thread::get_id();
  for (int job = 0; job < 50; ++job) {
    std::vector<int> done(100);
    std::atomic<int> failures = 0;
    std::atomic<bool> has_failed = false;
    all.for_each(4, true, done.size(), [&](std::size_t i) {
      if (std::this_thread::get_id() != caller) {
        ++failures;
        has_failed = true;
        throw std::bad_alloc();
      }
      while (job == 0 && !has_failed) std::this_thread::yield();  // at least one worker gets an item
      ++done[i];
    });
    if (job == 0) CHECK(failures > 0);
    CHECK(failures <= 3);  // a worker that has failed does no more
    for (const int times : done) REQUIRE(times == 1);
  }
}

TEST_CASE("what the caller throws reaches it, once no worker is at the job any more; the next job is as any") {
  workers all(3);
  const workers::turn turn(all, true);
  const auto caller = std::this_thread::get_id();
  for (int job = 0; job < 50; ++job) {
    std::atomic<int> begun = 0, ended = 0;
    const auto body = [&](std::size_t) {
      ++begun;
      if (std::this_thread::get_id() == caller) {
        while (begun < 2) std::this_thread::yield();  // a worker is at it
        throw std::runtime_error("mine");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      ++ended;
    };
    CHECK_THROWS_WITH_AS(all.for_each(3, true, 1000, body), "mine", std::runtime_error);
    CHECK(begun == ended + 1);
    // An item that fails on a worker, and here again.
    CHECK_THROWS_AS(all.for_each(3, true, 10, [](std::size_t) { throw std::bad_alloc(); }), std::bad_alloc);
    std::atomic<int> items = 0;
    all.for_each(3, true, 77, [&](std::size_t) { ++items; });
    CHECK(items == 77);
  }
}

#ifdef __linux__
TEST_CASE("as many processors as the thread may run on") {
  CHECK(processors() >= 1);
  std::size_t bound = 0, unbound = 0;
  std::thread([&] {
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    unbound = processors();
    CHECK(unbound == static_cast<std::size_t>(CPU_COUNT(&allowed)));
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    bound = processors();
  }).join();
  CHECK(bound == 1);
}

// A sanitizer's own memory would be limited, too.
#ifndef ADASUM_TEST_SANITIZED
TEST_CASE("a thread that cannot be started is an error, nothing is done, and those that were started are used") {
  workers all(200);
  const workers::turn turn(all, true);
  int items = 0;
  {
    struct limited_memory {
      rlimit before;
      limited_memory() {
        REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
        rlimit none = before;
        none.rlim_cur = 1;
        REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
      }
      ~limited_memory() { setrlimit(RLIMIT_AS, &before); }
    } const limited;
    // Emulators may ignore the limit.
    if (void* const some = mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); some != MAP_FAILED) {
      munmap(some, 1 << 20);
      MESSAGE("memory cannot be limited here");
      return;
    }
    bool is_named = false;
    try {
      all.for_each(200, true, 1, [&](std::size_t) { ++items; });
    } catch (const adasum::error& failure) {
      is_named = std::string_view(failure.what()).find("of 200 cannot be started") != std::string_view::npos;
    }
    CHECK(is_named);
  }
  CHECK(items == 0);
  std::atomic<int> done = 0;
  all.for_each(200, true, 1000, [&](std::size_t) { ++done; });
  CHECK(done == 1000);
}
#endif
#endif

}  // namespace test_of_exec_threads_workers
