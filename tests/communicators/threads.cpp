// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <latch>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#if defined(__GLIBC__)
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_threads {

using namespace adasum::test;
using adasum::incoming;
using adasum::thread_communicator;

namespace {

const adasum::serial_space space;

template <class T>
auto bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

TEST_CASE("self_communicator has no one to talk to") {
  const adasum::self_communicator alone;
  CHECK(alone.rank() == 0);
  CHECK(alone.size() == 1);
  CHECK_NOTHROW(alone.exchange(space, {}, {}));
  int value = 0;
  const incoming room{0, bytes_of(value)};
  CHECK_THROWS_AS(alone.exchange(space, {}, std::span(&room, 1)), adasum::communication_error);
}

TEST_CASE("nobody waits for a rank that leaves") {
  for_each_schedule([](const auto& order, const std::string& name) {
    for (const int size : {2, 3, 4, 5, 8})
      for (int deserter = 0; deserter < size; ++deserter) {
        CAPTURE(name);
        CAPTURE(size);
        CAPTURE(deserter);
        const auto ranks = on_ranks(size, [&](thread_communicator& handle) {
          const auto comm = std::move(handle);  // the last handle: it goes when this function returns
          if (comm.rank() == deserter) return ending{};
          return end_of(counted(40), [&](auto& g) {
            adasum::adasum_allreduce(space, comm, g, adasum::segments{40}, order, unchecked);
          });
        });
        for (int r = 0; r < size; ++r) {
          const auto& rank = ranks[static_cast<std::size_t>(r)];
          REQUIRE_MESSAGE(rank.value, rank.description());
          CHECK((rank.value->how == way::communication_error) == (r != deserter));
        }
      }
  });
}

TEST_CASE("a rank that does not come: the others throw when their timeout is over, and it when it comes") {
  // By ranks that are 0, 1 and 2 ranks away from it.
  for (const int size : {2, 3, 5})
    for (const bool in_place : {false, true})
      for (const bool checked : {false, true}) {
        CAPTURE(size);
        CAPTURE(in_place);
        CAPTURE(checked);
        std::latch over(size - 1);
        const auto ranks = on_ranks(size, [&](thread_communicator& comm) {
          auto plan = adasum::plan_allreduce<float>(
              space, comm, 1000, adasum::schedules::automatic{.in_place = in_place}, {.check_agreement = checked});
          std::vector<float> gradient(1000, 1);
          plan(gradient);
          comm.set_timeout(std::chrono::milliseconds(50));
          std::vector<std::string> said;
          if (comm.rank() == 1) over.wait();
          for (int run = 0; run < 2; ++run) {
            try {
              plan(gradient);
              said.push_back("no error");
            } catch (const adasum::communication_error& error) {
              said.push_back(error.what());
            }
          }
          if (comm.rank() != 1) over.count_down();
          return said;
        });
        bool somebody_names_it = false;
        for (int r = 0; r < size; ++r) {
          const auto& rank = ranks[static_cast<std::size_t>(r)];
          REQUIRE_MESSAGE(rank.value, rank.description());
          CAPTURE(rank.value->at(0));
          CHECK(rank.value->at(0) != "no error");
          CHECK(rank.value->at(1) != "no error");
          somebody_names_it = somebody_names_it || rank.value->at(0).find("rank 1 ") != std::string::npos;
        }
        CHECK(somebody_names_it);
        if (in_place && !checked) {  // they have made both calls before its first one
          CHECK(ranks[1].value->at(0).find("has begun the next") != std::string::npos);
          CHECK(ranks[1].value->at(1).find("behind") == std::string::npos);
        }
      }
}

TEST_CASE("messages of a rank that gave up are not taken later, and the text says what it waited for") {
  auto ranks = thread_communicator::group(2);
  std::array<int, 2> sent{1, 2}, received{};
  const adasum::outgoing out{1, bytes_of(sent[0])};
  const incoming in{1, bytes_of(received[0])};
  CHECK(ranks[0].timeout() == adasum::no_timeout);
  CHECK_THROWS_AS(ranks[0].set_timeout(std::chrono::seconds(0)), adasum::bad_input);
  ranks[0].set_timeout(std::chrono::milliseconds(20));
  CHECK(ranks[1].timeout() == adasum::no_timeout);  // each rank has its own
  CHECK_THROWS_WITH_AS(ranks[0].exchange(space, std::span(&out, 1), std::span(&in, 1)),
                       "adasum::thread_communicator: rank 0: rank 1 has not come within 0.02 seconds",
                       adasum::timeout_error);
  CHECK_THROWS_WITH_AS(ranks[0].exchange(space, std::span(&out, 1), {}), doctest::Contains("any more"),
                       adasum::timeout_error);
  const incoming from_0{0, bytes_of(received[1])};
  CHECK_THROWS_WITH_AS(ranks[1].exchange(space, {}, std::span(&from_0, 1)),
                       doctest::Contains("rank 0 has waited in vain for rank 1, and left"),
                       adasum::communication_error);
  CHECK(received == std::array<int, 2>{});
}

TEST_CASE("run rethrows the cause, not its consequences") {
  const auto reduce_unless = [](int culprit, auto fail) {
    return [=](const thread_communicator& comm) {
      std::vector<float> gradient(8, 1);
      if (comm.rank() == culprit) fail();
      adasum::adasum_allreduce(space, comm, gradient, adasum::segments{8}, adasum::schedules::recursive_halving{},
                               unchecked);
    };
  };
  const auto failure = [] { throw std::runtime_error("the cause"); };
  CHECK_THROWS_WITH_AS(thread_communicator::run(4, reduce_unless(3, failure)), "the cause", std::runtime_error);
  CHECK_NOTHROW(thread_communicator::run(4, reduce_unless(-1, failure)));
}

// Sanitizers and emulators need more memory than is left here.
#if defined(__GLIBC__) && !defined(ADASUM_TEST_SANITIZED) && !defined(ADASUM_TEST_EMULATED)
TEST_CASE("run: where the system has no more threads, nobody waits for the ranks without one") {
  const int size = 200;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit little{pages * static_cast<std::size_t>(getpagesize()) + (std::size_t{100} << 20), before.rlim_max};
  setrlimit(RLIMIT_AS, &little);  // for the stacks of some threads
  const auto await_last = [&](const thread_communicator& comm) {
    int received = 0;
    const incoming from_last{size - 1, bytes_of(received)};
    comm.exchange(space, {}, std::span(&from_last, 1));
  };
  CHECK_THROWS_AS(thread_communicator::run(size, await_last), std::system_error);
  setrlimit(RLIMIT_AS, &before);
}
#endif

}  // namespace test_of_communicators_threads
