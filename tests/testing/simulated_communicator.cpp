// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a simulation is made of. Reductions by it: tests/simulation/.
#include <doctest/doctest.h>

#include <adasum/exec/serial.hpp>
#include <adasum/testing.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace test_of_testing_simulated_communicator {

using namespace adasum;

namespace {

using kind = simulated_fault::kind;
const serial_space space;

template <class Exception>
bool is_a(const std::exception_ptr& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const Exception&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Each rank sends a number to all others, and adds up what it gets.
int sum_of_ranks(const simulated_communicator& comm) {
  const int mine = comm.rank() + 1;
  std::vector<int> all(static_cast<std::size_t>(comm.size()), mine);
  std::vector<outgoing> out;
  std::vector<incoming> in;
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    out.push_back({peer, std::as_bytes(std::span(&mine, 1))});
    in.push_back({peer, std::as_writable_bytes(std::span(&all[static_cast<std::size_t>(peer)], 1))});
  }
  comm.exchange(space, out, in);
  int sum = 0;
  for (const int one : all) sum += one;
  return sum;
}

/// Without what only a machine's clock can judge: while one rank sleeps in its turn, no other runs.
class blocking_communicator {
 public:
  explicit blocking_communicator(const simulated_communicator& comm) : comm_(comm) {}
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  template <class Space>
  void exchange(const Space& on, std::span<const outgoing> out, std::span<const incoming> in) const {
    comm_.exchange(on, out, in);
  }
  std::span<const int> nodes() const { return comm_.nodes(); }
  simulated_communicator::memory share(std::size_t bytes) const { return comm_.share(bytes); }

 private:
  simulated_communicator comm_;
};

}  // namespace

TEST_CASE("it is what check_communicator asks for") {
  const int sizes[] = {2, 3, 5};
  for (std::uint64_t seed = 0; seed < 13; ++seed) {  // each manner of turns, with each number of ranks in turn
    const int size = seed == 12 ? 1 : sizes[seed % 3];
    CAPTURE(size);
    CAPTURE(seed);
    std::vector<std::string> problems(static_cast<std::size_t>(size));
    const auto run = simulate(size, {.seed = seed}, [&](const simulated_communicator& comm) {
      try {
        check_communicator(blocking_communicator(comm), space);
      } catch (const std::exception& problem) {
        problems[static_cast<std::size_t>(comm.rank())] = problem.what();
      }
    });
    CHECK(run.deadlock.empty());
    for (const auto& problem : problems) CHECK(problem.empty());
  }
}

TEST_CASE("ranks of a node share memory") {
  const auto run = simulate(5, {.nodes = {0, 1, 0, 1, 1}}, [](const simulated_communicator& comm) {
    const auto memory = comm.share(100);
    const std::vector<int> expected = comm.rank() == 0 || comm.rank() == 2 ? std::vector{0, 2} : std::vector{1, 3, 4};
    CHECK(std::vector<int>(memory.ranks().begin(), memory.ranks().end()) == expected);
  });
  for (const auto& thrown : run.thrown) CHECK_FALSE(thrown);
}

TEST_CASE("a run follows from its seed, and seeds make different runs") {
  const auto trace_of = [](std::uint64_t seed) {
    return simulate(6, {.seed = seed},
                    [](const simulated_communicator& comm) {
                      for (int turn = 0; turn < 5; ++turn) CHECK(sum_of_ranks(comm) == 21);
                    })
        .trace;
  };
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto trace = trace_of(seed);
    traces.insert(trace);
    if (seed < 30) CHECK(trace_of(seed) == trace);
  }
  CHECK(traces.size() > 90);  // two may be alike: some seeds choose no delays, and each rank until it waits
}

TEST_CASE("ranks that wait for each other are found, and none hangs") {
  const auto run = simulate(3, {.seed = 7}, [](const simulated_communicator& comm) {
    if (comm.rank() == 2) return;
    std::array<std::byte, 4> memory{};
    const incoming in{1 - comm.rank(), memory};
    comm.exchange(space, {}, std::span(&in, 1));
  });
  CHECK(run.deadlock.find("rank 0 waits for a message of rank 1") != std::string::npos);
  CHECK(run.deadlock.find("rank 1 waits for a message of rank 0") != std::string::npos);
  CHECK(run.deadlock.find("seed 7") != std::string::npos);
  CHECK(is_a<simulated_deadlock>(run.thrown[0]));
  CHECK(is_a<simulated_deadlock>(run.thrown[1]));
  CHECK_FALSE(run.thrown[2]);
}

TEST_CASE("so are ranks that ask for ever, by test() and in shared memory") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {  // each takes thousands of turns
    const auto by_test = simulate(2, {.seed = seed}, [](const simulated_communicator& comm) {
      std::array<std::byte, 4> memory{};
      const incoming in{1 - comm.rank(), memory};
      simulated_communicator::pending pending;
      comm.post(space, {}, std::span(&in, 1), pending);
      while (!pending.test()) {
      }
    });
    CHECK_FALSE(by_test.deadlock.empty());
    const auto in_memory = simulate(3, {.seed = seed}, [](const simulated_communicator& comm) {
      const auto memory = comm.share(8);
      while (*memory.of(2) == std::byte{0}) memory.progress();
    });
    CHECK_FALSE(in_memory.deadlock.empty());
    for (const auto& thrown : in_memory.thrown) CHECK(is_a<simulated_deadlock>(thrown));
  }
}

TEST_CASE("a rank that is late is waited for, in shared memory too") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto run = simulate(4, {.seed = seed}, [](const simulated_communicator& comm) {
      const auto memory = comm.share(8);
      for (int i = 0; comm.rank() == 3 && i < 500; ++i) comm.point();
      *memory.of(static_cast<std::size_t>(comm.rank())) = std::byte{1};
      for (std::size_t r = 0; r < 4; ++r)
        while (*memory.of(r) == std::byte{0}) memory.progress();
    });
    CHECK(run.deadlock.empty());
  }
}

TEST_CASE("faults come where they are to come, once") {
  const auto run_with = [](kind what, std::size_t at) {
    return simulate(3, {.seed = 3, .fault = {what, 1, at}}, [](const simulated_communicator& comm) {
      comm.point();
      bool again = false;
      try {
        sum_of_ranks(comm);
      } catch (const std::bad_alloc&) {
        again = true;
      }
      if (again) CHECK(sum_of_ranks(comm) == 6);
      comm.share(8);
    });
  };
  const auto failing = run_with(kind::failing_point, 0);
  CHECK(failing.fault_came);
  CHECK(is_a<simulated_failure>(failing.thrown[1]));
  CHECK(is_a<communication_error>(failing.thrown[0]));  // it has left
  CHECK_FALSE(run_with(kind::failing_point, 1).fault_came);

  const auto without_memory = run_with(kind::short_of_memory, 0);
  CHECK(without_memory.fault_came);
  for (const auto& thrown : without_memory.thrown) CHECK_FALSE(thrown);

  const auto withheld = run_with(kind::withheld_message, 1);  // to rank 2
  CHECK(withheld.fault_came);
  CHECK_FALSE(withheld.thrown[0]);
  CHECK_FALSE(withheld.thrown[1]);
  CHECK(is_a<communication_error>(withheld.thrown[2]));

  const auto departed = run_with(kind::departure, 0);
  CHECK(is_a<timeout_error>(departed.thrown[1]));
  for (const std::size_t rank : {0u, 2u}) CHECK(is_a<communication_error>(departed.thrown[rank]));

  for (const auto& thrown : run_with(kind::no_shared_memory, 0).thrown) CHECK(is_a<shared_memory_error>(thrown));
}

TEST_CASE("nothing arrives of a rank that is cut off, and it waits for no other") {
  const auto run = simulate(3, {.seed = 1, .fault = {kind::cut_off, 1, 1}}, [](const simulated_communicator& comm) {
    int got = 0;
    const int peer = (comm.rank() + 1) % 2;
    for (int i = 0; i < 2 && comm.rank() < 2; ++i) {
      const outgoing out{peer, std::as_bytes(std::span(&i, 1))};
      if (comm.rank() == 1) comm.exchange(space, std::span(&out, 1), {});
      const incoming in{peer, std::as_writable_bytes(std::span(&got, 1))};
      if (comm.rank() == 0) comm.exchange(space, {}, std::span(&in, 1));
      CHECK(got == (comm.rank() == 0 ? i : 0));
    }
    comm.all(true);  // otherwise rank 1 would have left
  });
  CHECK(run.fault_came);
  CHECK(run.deadlock.find("rank 0 waits for a message of rank 1") != std::string::npos);
  CHECK_FALSE(run.waits_unscheduled);
  CHECK(is_a<simulated_deadlock>(run.thrown[0]));
  CHECK_FALSE(run.thrown[1]);
}

TEST_CASE("in shared memory, a rank looks late, or leaves") {
  // Rank 0 waits there for rank 1, and counts how often the others have had a turn when it goes on.
  const auto run_with = [](kind what) {
    int turns = 0, seen = 0;
    const auto run = simulate(3, {.seed = 2, .fault = {what, 0, 2}}, [&](const simulated_communicator& comm) {
      const auto memory = comm.share(8);
      if (comm.rank() == 0) {
        while (*memory.of(1) == std::byte{0}) memory.progress();
        seen = turns;
      } else {
        for (int i = 0; i < 4000; ++i, ++turns) {
          comm.point();
          if (i == 10) *memory.of(static_cast<std::size_t>(comm.rank())) = std::byte{1};
        }
        CHECK((memory.has_left(0) || what != kind::departure));
      }
    });
    CHECK(run.deadlock.empty());
    CHECK(run.fault_came == (what != kind::nothing));
    CHECK(is_a<timeout_error>(run.thrown[0]) == (what == kind::departure));
    return seen;
  };
  const auto in_time = run_with(kind::nothing);
  CHECK(in_time < 1000);
  CHECK(run_with(kind::late_look) > 2500);
  CHECK(run_with(kind::departure) == 0);
}

TEST_CASE("what is written beside shared memory is found") {
  const auto run = simulate(2, {}, [](const simulated_communicator& comm) {
    const auto memory = comm.share(64);
    if (comm.rank() == 1) memory.of(0)[memory.bytes()] = std::byte{1};
  });
  CHECK_FALSE(run.damage.empty());
}

TEST_CASE("ranks meet without a message") {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    simulate(4, {.seed = seed}, [](const simulated_communicator& comm) {
      CHECK(comm.all(true));
      CHECK_FALSE(comm.all(comm.rank() != 2));
      if (comm.rank() == 1) return;
      CHECK(comm.all(true));  // those that are there
    });
}

TEST_CASE("what cannot be simulated is refused") {
  const auto nothing = [](const simulated_communicator&) {};
  CHECK_THROWS_AS(simulate(0, {}, nothing), bad_input);
  CHECK_THROWS_AS(simulate(2, {.nodes = {0, 0, 1}}, nothing), bad_input);
}

}  // namespace test_of_testing_simulated_communicator
