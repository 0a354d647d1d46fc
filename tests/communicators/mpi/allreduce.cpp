// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>
#include <adasum/schedules/cheapest.hpp>

#include "support/mpi_world.hpp"
#include "support/random_gradients.hpp"
#include "support/reduction.hpp"
#include "support/schedules.hpp"

namespace test_of_communicators_mpi_allreduce {

using namespace adasum::test;

namespace {

/// Reduces gradients[rank], by every schedule, and checks every rank's result and that they are the same.
template <class Rule, adasum::scalar T>
void check_every_schedule(const adasum::mpi_communicator& comm, const std::vector<std::vector<T>>& gradients,
                          const adasum::segments& segs, const Rule& rule) {
  const auto expected = expectation::of<T>(rule, gradients, segs);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    reduced<T> got{gradients[static_cast<std::size_t>(comm.rank())], {}};
    CHECK_NOTHROW(got.found = adasum::combine_allreduce(adasum::serial_space{}, comm, got.gradient, rule, segs, order));
    check_reduced(got, expected, segs);
    CHECK(same_on_all_ranks(got.gradient, comm.native()));
  });
}

template <adasum::scalar T>
void check_lengths(const adasum::mpi_communicator& comm, const std::vector<std::size_t>& lengths) {
  std::size_t turn = 0;
  for (const auto length : lengths) {
    const auto seed = ++turn;
    const auto kind = all_gradient_kinds[turn % all_gradient_kinds.size()];
    const adasum::segments segs(random_segments(length, 1 + turn % 4, seed));
    const auto gradients = random_gradients<T>(static_cast<std::size_t>(comm.size()), length, seed, kind);
    CAPTURE(length);
    CAPTURE(std::string(to_string(kind)));
    check_every_schedule(comm, gradients, segs, adasum::rules::adasum{});
    check_every_schedule(comm, gradients, segs, adasum::rules::mean{});
  }
}

}  // namespace

TEST_CASE("every schedule on the world: float") {
  check_lengths<float>(adasum::mpi_communicator{MPI_COMM_WORLD}, {0, 1, 6, 77, 1000, 5003});
}

TEST_CASE("every schedule on the world: double") {
  check_lengths<double>(adasum::mpi_communicator{MPI_COMM_WORLD}, {5, 200});
}

TEST_CASE("rules of all gradients at once: as one process does") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::segments segs{40, 0, 60};
  const auto gradients = random_gradients<double>(static_cast<std::size_t>(comm.size()), segs.total(), 5);
  const auto check = [&](const auto& rule) {
    std::vector<double> expected(segs.total());
    adasum::combine(adasum::serial_space{}, gradients, expected, rule, segs);
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    auto plan = adasum::plan_allreduce<double>(adasum::serial_space{}, comm, segs, rule);
    plan.start(gradient);
    while (!plan.test()) std::this_thread::yield();
    plan.wait();
    for (std::size_t x = 0; x < expected.size(); ++x)
      CHECK(gradient[x] == doctest::Approx(expected[x]).epsilon(1e-10).scale(1));
    CHECK(same_on_all_ranks(gradient, comm.native()));
  };
  check(adasum::rules::adacons{.per_segment = true});
  check(adasum::rules::unit_mean{});
}

TEST_CASE("messages cut into pieces give the same bits") {
  const adasum::segments segs{1500, 0, 777};
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(world_size()), segs.total(), 71);
  for_each_schedule([&](const auto& order, const std::string& name) {
    CAPTURE(name);
    const auto reduce = [&](const adasum::mpi_communicator& comm) {
      auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
      adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, segs, order);
      return gradient;
    };
    CHECK(same_bits(reduce(adasum::mpi_communicator{MPI_COMM_WORLD, 1000}),
                    reduce(adasum::mpi_communicator{MPI_COMM_WORLD})));
  });
}

TEST_CASE("halves of the world by themselves, and single ranks") {
  for (const int colours : {2, world_size()}) {
    CAPTURE(colours);
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % colours, -world_rank(), &part);  // in reversed order
    {
      const adasum::mpi_communicator comm{part};
      CHECK(comm.size() == (world_size() - 1 - world_rank() % colours) / colours + 1);
      check_lengths<float>(comm, {64, 5003});
    }
    MPI_Comm_free(&part);
  }
}

TEST_CASE("a single call made again: the same bits, and in memory that the ranks share where a plan works there") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const adasum::serial_space exec;
  for (const std::size_t length : {std::size_t{40}, std::size_t{30'000}}) {
    CAPTURE(length);
    const auto gradients = random_gradients<float>(static_cast<std::size_t>(comm.size()), length, 3);
    const auto& own = gradients[static_cast<std::size_t>(comm.rank())];
    auto planned = own;
    auto plan = adasum::plan_allreduce<float>(exec, comm, length);
    plan(planned);
    for (int call = 0; call < 4; ++call) {
      CAPTURE(call);
      auto gradient = own;
      const auto found = adasum::adasum_allreduce(exec, comm, gradient);
      CHECK(same_bits(gradient, planned));
      if (call > 0) CHECK(found.schedule() == plan.last_report().schedule());
    }
  }
}

TEST_CASE("a plan on MPI") {
  const adasum::segments segs{100, 28};
  const auto gradients = random_gradients<float>(static_cast<std::size_t>(world_size()), segs.total(), 73);
  const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs, adasum::schedules::recursive_halving{});
  for (int run = 0; run < 3; ++run) {
    std::ranges::copy(gradients[static_cast<std::size_t>(comm.rank())], plan.buffer().begin());
    plan();
    const std::vector<float> result(plan.buffer().begin(), plan.buffer().end());
    CHECK(worst_error_over_bound(result, expected.exact.values, expected.bounds, segs) <= 1);
    CHECK(same_on_all_ranks(result));
  }
}

TEST_CASE("a plan in memory that the ranks share: short and long gradients, run after run") {
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto size = static_cast<std::size_t>(world_size());
  for (const std::size_t length : {5u, 300u, 20000u}) {
    CAPTURE(length);
    const adasum::segments segs{length / 3, 0, length - length / 3};
    auto plan = adasum::plan_allreduce<float>(adasum::serial_space{}, comm, segs);
    const int runs = length > 1000 ? 5 : 100;
    for (int run = 0; run < runs; ++run) {
      const auto gradients = random_gradients<float>(size, segs.total(), 97 + static_cast<std::uint64_t>(run));
      auto mine = gradients[static_cast<std::size_t>(comm.rank())];
      const auto& found = plan(mine);
      const bool in_place = adasum::detail::pays_in_place(world_size(), {length, sizeof(float), segs.size()});
      CHECK((found.bytes_sent() == 0) == (in_place || size == 1));
      CHECK(same_on_all_ranks(mine));
      if (run % 20 != 0) continue;
      const auto expected = expectation::of<float>(adasum::rules::adasum{}, gradients, segs);
      CHECK(worst_error_over_bound(mine, expected.exact.values, expected.bounds, segs) <= 1);
    }
  }
}

}  // namespace test_of_communicators_mpi_allreduce
