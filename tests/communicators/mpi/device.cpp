// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a device through MPI: staged in pinned memory of the host, and, where the MPI library can, sent as it is.
#include <doctest/doctest.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/device.hpp"
#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_device {

using namespace adasum;
using namespace adasum::test;

namespace {

template <scalar T>
void check_schedules(const mpi_communicator& comm, std::size_t length) {
  const segments cut(random_segments(length, 3, length));
  const auto gradients = random_gradients<T>(static_cast<std::size_t>(comm.size()), length, length);
  const auto expected = expectation::of<T>(rules::adasum{}, gradients, cut);
  for_each_message_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const stream queue;
    const cuda_space exec(queue);
    const device_array<T> gradient(gradients[static_cast<std::size_t>(comm.rank())]);
    auto plan = plan_allreduce<T>(exec, comm, cut, order);
    plan(gradient.all());
    auto found = plan(device_array<T>(gradients[static_cast<std::size_t>(comm.rank())]).all());  // rooms are used again
    const reduced<T> result{gradient.values(), std::move(found)};
    CHECK(same_on_all_ranks(result.gradient));
    check_reduced(result, expected, cut);
  });
}

}  // namespace

TEST_CASE("every schedule, staged, in one piece and in several") {
  const mpi_communicator comm(MPI_COMM_WORLD, mpi_communicator::default_piece_limit, device_messages::staged);
  check_schedules<float>(comm, 1000);
  check_schedules<double>(comm, 300000);
  const mpi_communicator small_pieces(MPI_COMM_WORLD, 1000, device_messages::staged);
  check_schedules<__half>(small_pieces, 5000);
}

TEST_CASE("what the MPI library says decides, if nothing else does") {
  const mpi_communicator comm(MPI_COMM_WORLD);
  check_schedules<float>(comm, 2000);
}

TEST_CASE("a rank whose input is bad leaves no other waiting") {
  const mpi_communicator comm(MPI_COMM_WORLD, mpi_communicator::default_piece_limit, device_messages::staged);
  if (comm.size() == 1) return;
  for (const bool checked : {false, true}) {
    const stream queue;
    options choices;
    choices.check_agreement = checked;
    auto plan = plan_allreduce<float>(cuda_space(queue), comm, segments{2000}, schedules::recursive_halving{}, choices);
    const device_array<float> gradient(std::vector<float>(comm.rank() == 0 ? 1999 : 2000, 1));
    bool threw = false;
    try {
      plan(gradient.all());
    } catch (const error&) {
      threw = true;
    }
    CHECK(threw);
    const device_array<float> good(std::vector<float>(2000, 1));
    plan(good.all());
    CHECK(good.values()[1999] == 1);
  }
}

}  // namespace test_of_communicators_mpi_device
