// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <adasum/machine_file.hpp>
#include <adasum/measure_machine.hpp>
#include <adasum/mpi.hpp>

#include "support/mpi_world.hpp"

namespace test_of_communicators_mpi_measure_machine {

using namespace adasum::test;

namespace {

const adasum::serial_space exec;
constexpr std::size_t little = 1;  // bytes: only what is measured in any case

/// Has no memory on one rank.
struct failing_space : adasum::serial_space {
  bool fails = false;
  friend bool operator==(const failing_space&, const failing_space&) = default;
  template <class T>
  auto allocate(std::size_t count) const {
    if (fails) throw std::bad_alloc();
    return adasum::serial_space::allocate<T>(count);
  }
};

}  // namespace

TEST_CASE("constants over MPI: positive, the same bits on all ranks, and of use to a plan") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto on = adasum::measure_machine(exec, comm, little);
  CHECK(adasum::schedules::bad_constant_of(on).empty());
  for (const double one : {on.across.latency, on.across.per_message, on.inside.latency, on.inside.per_message,
                           on.shared.barrier, on.per_pair_element.of(0), on.per_product.of(0), on.per_term.of(0)})
    CHECK(one > 0);
  const auto numbers = adasum::schedules::constants_of(on);
  CHECK(same_on_all_ranks(std::vector<double>(numbers.begin(), numbers.end())));
  for (const std::size_t length : {10u, 1000u, 100'000u}) {
    std::vector<float> gradient(length, 1);
    auto plan = adasum::plan_allreduce<float>(exec, comm, length, adasum::schedules::automatic{.on = on},
                                              adasum::options{.check_agreement = true});
    plan(gradient);
    CHECK(gradient == std::vector<float>(length, 1));  // equal gradients
  }
}

TEST_CASE("a rank without memory: all ranks throw, and the communicator works on") {
  if (world_size() < 2) return;
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  failing_space space;
  space.fails = comm.rank() == comm.size() - 1;
  if (space.fails)
    CHECK_THROWS_AS(adasum::measure_machine(space, comm, little), std::bad_alloc);
  else
    CHECK_THROWS_AS(adasum::measure_machine(space, comm, little), adasum::error);
  CHECK_NOTHROW(adasum::measure_machine(exec, comm, little));
}

TEST_CASE("a file that only rank 0 sees, and one that is broken there") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  if (comm.rank() == 0)
    setenv("ADASUM_MACHINE", "/nowhere/at/all", 1);
  else
    unsetenv("ADASUM_MACHINE");  // as where mpirun does not hand on variables
  std::string message;
  try {
    adasum::machine_from_environment(exec, comm);
  } catch (const adasum::error& problem) {
    message = problem.what();
  }
  CHECK(message.find("/nowhere/at/all cannot be read") != message.npos);
  CHECK(same_on_all_ranks(message));
  unsetenv("ADASUM_MACHINE");
  CHECK(adasum::machine_from_environment(exec, comm) == std::nullopt);
}

}  // namespace test_of_communicators_mpi_measure_machine
