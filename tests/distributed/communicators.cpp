// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/disagreements.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"

using namespace adasum::test;
using adasum::incoming;
using adasum::outgoing;
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

TEST_CASE("a group has at least one rank") {
  CHECK_THROWS_WITH_AS(thread_communicator::group(0), "adasum::thread_communicator: a group of 0 ranks",
                       adasum::bad_input);
}

TEST_CASE("messages between two ranks keep their order, empty ones included") {
  const auto ranks = on_ranks(2, [](const thread_communicator& comm) {
    const int peer = 1 - comm.rank();
    std::array<int, 2> mine{10 * comm.rank() + 1, 10 * comm.rank() + 2}, theirs{};
    const std::array out{outgoing{peer, bytes_of(mine[0])}, outgoing{peer, {}}, outgoing{peer, bytes_of(mine[1])}};
    const std::array in{incoming{peer, bytes_of(theirs[0])}, incoming{peer, {}}, incoming{peer, bytes_of(theirs[1])}};
    comm.exchange(space, out, in);
    return theirs;
  });
  CHECK(*ranks[0].value == std::array{11, 12});
  CHECK(*ranks[1].value == std::array{1, 2});
}

TEST_CASE("a withheld message and one of another size are errors that say the sizes") {
  for (const bool withheld : {true, false}) {
    const auto ranks = on_ranks(2, [&](const thread_communicator& comm) {
      std::array<int, 2> values{1, 2};
      const auto bytes = std::as_writable_bytes(std::span(values));
      const outgoing out{1, withheld ? bytes : bytes.first(4), adasum::residence::host, withheld};
      const incoming in{0, bytes};
      return end_of(counted(1), [&](auto&) {
        if (comm.rank() == 0) comm.exchange(space, std::span(&out, 1), {});
        if (comm.rank() == 1) comm.exchange(space, {}, std::span(&in, 1));
      });
    });
    CHECK(ranks[0].value->how == way::returned);
    CHECK(ranks[1].value->how == way::communication_error);
    CHECK(ranks[1].value->message == "adasum::thread_communicator: rank 1: rank 0 sent " +
                                         std::string(withheld ? "0" : "4") + " bytes where 8 were expected");
  }
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
