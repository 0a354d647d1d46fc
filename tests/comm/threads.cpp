// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"

namespace test_of_comm_threads {

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

}  // namespace test_of_comm_threads
