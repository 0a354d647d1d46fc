// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/allreduce.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/plan.hpp>
#include <adasum/schedules/hierarchical.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/12_routed_communicator/routed_communicator.hpp"
#include "support/allocations.hpp"
#include "support/bits.hpp"
#include "support/random_gradients.hpp"
#include "support/ranks.hpp"

namespace test_of_examples_routed_communicator {

using namespace adasum;
using namespace adasum::test;
using example::routed_communicator;

namespace {

const serial_space space;
const std::vector<int> node_of_rank{0, 0, 1, 1};

/// Runs out of memory before it has exchanged anything, in the next few of its exchanges.
struct short_of_memory {
  thread_communicator comm;
  std::shared_ptr<int> failures = std::make_shared<int>(0);

  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }
  template <class Space>
  void exchange(const Space& exec, std::span<const outgoing> out, std::span<const incoming> in) const {
    if (*failures > 0) {
      --*failures;
      throw std::bad_alloc();
    }
    comm.exchange(exec, out, in);
  }
};

/// One rank's two communicators.
struct halves {
  short_of_memory inner, outer;
  routed_communicator<short_of_memory, short_of_memory> both() const { return {inner, outer, node_of_rank}; }
};

/// function(halves) on each of four ranks, of which two are in a node.
template <class Function>
auto on_two_nodes(const Function& function) {
  const auto first = thread_communicator::group(2), second = thread_communicator::group(2);
  auto all = thread_communicator::group(4);
  std::vector<halves> ranks;
  for (std::size_t r = 0; r < 4; ++r) ranks.push_back({{r < 2 ? first[r] : second[r - 2]}, {all[r]}});
  all.clear();
  return on_each(std::move(ranks), function);
}

/// Sends the rank and a number to the neighbour in the node and to one in the other node. @return what has come from these
template <class Comm>
std::array<int, 2> talk(const Comm& comm, int number) {
  const int neighbour = comm.rank() ^ 1, across = comm.rank() ^ 2;
  const int mine = 10 * number + comm.rank();
  std::array<int, 2> found{-1, -1};
  const auto bytes = std::as_bytes(std::span(&mine, 1));
  const std::array<outgoing, 2> out{outgoing{across, bytes}, outgoing{neighbour, bytes}};
  const std::array<incoming, 2> in{incoming{neighbour, std::as_writable_bytes(std::span(&found[0], 1))},
                                   incoming{across, std::as_writable_bytes(std::span(&found[1], 1))}};
  comm.exchange(space, out, in);
  return found;
}
std::array<int, 2> told(int rank, int number) { return {10 * number + (rank ^ 1), 10 * number + (rank ^ 2)}; }

}  // namespace

TEST_CASE("memory short in one half: each message is sent once, whether or not the exchange is begun again") {
  for (const bool inside : {false, true}) {
    CAPTURE(inside);
    const auto ranks = on_two_nodes([&](const halves& mine) {
      const auto comm = mine.both();
      bool begun_again = false;
      if (comm.rank() == 0) *(inside ? mine.inner : mine.outer).failures = 1;
      std::vector<std::array<int, 2>> found;
      try {
        found.push_back(talk(comm, 1));
      } catch (const std::bad_alloc&) {  // as the library does
        begun_again = true;
        found.push_back(talk(comm, 1));
      }
      found.push_back(talk(comm, 2));
      return std::pair(begun_again, found);
    });
    for (int r = 0; r < 4; ++r) {
      const auto& rank = ranks[static_cast<std::size_t>(r)];
      REQUIRE_MESSAGE(rank.value, rank.description());
      CHECK(rank.value->second == std::vector{told(r, 1), told(r, 2)});
      CHECK(rank.value->first == (inside && r == 0));  // the half outside is, without the caller
    }
  }
}

TEST_CASE("memory short twice after the node's half has gone out: a communication_error, and no std::bad_alloc") {
  const auto ranks = on_two_nodes([&](const halves& mine) {
    const auto comm = mine.both();
    if (comm.rank() == 0) *mine.outer.failures = 2;
    std::string error;
    std::array<int, 2> found{};
    try {
      found = talk(comm, 1);
    } catch (const communication_error& failure) {
      error = failure.what();
      // The rank across still waits for the message.
      const int late = 10;
      int from_across = 0;
      const outgoing out{2, std::as_bytes(std::span(&late, 1))};
      const incoming in{2, std::as_writable_bytes(std::span(&from_across, 1))};
      mine.outer.exchange(space, std::span(&out, 1), std::span(&in, 1));
      found = {11, from_across};
    }
    return std::tuple(error, found, talk(comm, 2));
  });
  for (int r = 0; r < 4; ++r) {
    const auto& rank = ranks[static_cast<std::size_t>(r)];
    REQUIRE_MESSAGE(rank.value, rank.description());
    const auto& [error, found, next] = *rank.value;
    CHECK((error.find("no memory") != std::string::npos) == (r == 0));
    CHECK(found == told(r, 1));
    CHECK(next == told(r, 2));
  }
}

TEST_CASE("a plan over both, with memory short on one rank: the result is right, or all ranks fail") {
  const segments cut{30, 5};
  const auto gradients = random_gradients<float>(4, cut.total(), 6);
  const schedules::hierarchical nodes{node_of_rank, rules::adasum{}};
  const auto ranks = on_two_nodes([&](const halves& mine) {
    const auto comm = mine.both();
    const auto reduce = [&] {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      auto plan = plan_allreduce<float>(space, comm, cut, nodes);
      if (comm.rank() == 3) *mine.inner.failures = *mine.outer.failures = 1;
      plan(gradient);
      return gradient;
    };
    const auto first = reduce();
    *mine.inner.failures = *mine.outer.failures = 0;
    return std::pair(first, reduce());
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(same_bits(rank.value->first, rank.value->second));
    CHECK(same_bits(rank.value->first, ranks[0].value->first));
  }
}

TEST_CASE("nothing is allocated once an exchange of the size has been made") {
  const auto ranks = on_two_nodes([&](const halves& mine) {
    const auto comm = mine.both();
    talk(comm, 1);
    const auto before = allocations();
    talk(comm, 2);
    return allocations() - before;
  });
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.value, rank.description());
    CHECK(*rank.value == 0);
  }
}

TEST_CASE(
    "a rank that gives up waiting inside its node goes on with the others across nodes, also in later exchanges") {
  const auto first = thread_communicator::group(2), second = thread_communicator::group(2);
  struct rank_halves {
    thread_communicator inner, outer;
  };
  std::vector<rank_halves> ranks;
  for (auto& outer : thread_communicator::group(4)) {
    const auto r = ranks.size();
    ranks.push_back({r < 2 ? first[r] : second[r - 2], outer});
  }
  const auto outcomes = on_each(std::move(ranks), [](const rank_halves& mine) {
    const routed_communicator<thread_communicator, thread_communicator> comm(mine.inner, mine.outer, node_of_rank);
    std::array<int, 2> got{-1, -1};
    if (comm.rank() == 1) return got;  // does not come, nor does rank 3
    if (comm.rank() == 3) return got;
    mine.inner.set_timeout(std::chrono::milliseconds(50));
    for (int turn = 0; turn < 2; ++turn) {
      const std::array<outgoing, 2> out{outgoing{comm.rank() ^ 2, std::as_bytes(std::span(&turn, 1))},
                                        outgoing{comm.rank() ^ 1, std::as_bytes(std::span(&turn, 1))}};
      const incoming in{comm.rank() ^ 2,
                        std::as_writable_bytes(std::span(got).subspan(static_cast<std::size_t>(turn), 1))};
      const incoming never{comm.rank() ^ 1, std::as_writable_bytes(std::span(&turn, 1))};
      const std::array<incoming, 2> both{in, never};
      CHECK_THROWS_AS(comm.exchange(space, out, both), timeout_error);
      CHECK(comm.state().gave_up() == mine.inner.state().gave_up());
      CHECK_FALSE(mine.outer.state().gave_up());
    }
    return got;
  });
  CHECK(results_of(outcomes)[0] == std::array{0, 1});
  CHECK(results_of(outcomes)[2] == std::array{0, 1});
}

TEST_CASE("a routed communicator can be assigned to, with plans that it keeps") {
  const auto ranks = on_two_nodes([](const halves& mine) {
    auto comm = mine.both();
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<float> gradient(8, 1);
      adasum_allreduce(space, comm, gradient);
      comm = mine.both();
    }
    return true;
  });
  CHECK(results_of(ranks).size() == 4);
}

}  // namespace test_of_examples_routed_communicator
