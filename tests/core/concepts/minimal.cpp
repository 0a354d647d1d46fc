// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types with exactly what core/concepts.hpp requires, in every public call: what a call needs beyond that page does not
// compile here, or does not end.
#include <doctest/doctest.h>

#include <adasum/schedules/automatic.hpp>
#include <adasum/schedules/shared_memory.hpp>

#include <vector>

#include "support/every_call.hpp"
#include "support/minimal_types.hpp"

namespace test_of_core_concepts_minimal {

using namespace adasum;
using namespace adasum::test;

namespace {

template <class Comm, scalar T, class Schedule>
void run_on(const Schedule& schedule) {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const auto gradients = random_gradients<T>(static_cast<std::size_t>(size), call_cut.total(), 5);
    const auto ranks = on_each(group_of<Comm>(size), [&](const Comm& comm) {
      const minimal_space<T> space(1);
      run_every_collective_call<T>(space, comm, minimal_pairwise_rule(1), schedule, gradients);
      run_every_collective_call<T>(space, comm, minimal_gram_rule(1), schedule, gradients);
      return true;
    });
    for (const auto& rank : ranks) CHECK_MESSAGE(rank.value, rank.description());
  }
}

}  // namespace

TEST_CASE_TEMPLATE("calls of one process", T, float, double) {
  run_every_local_call<T>(minimal_space<T>(1), minimal_pairwise_rule(1), minimal_gram_rule(1));
}

TEST_CASE_TEMPLATE("calls among ranks", T, float, double) { run_on<minimal_communicator, T>(minimal_schedule(1)); }

TEST_CASE("calls among ranks that can post") { run_on<minimal_posting_communicator, float>(minimal_schedule(1)); }

TEST_CASE_TEMPLATE("calls among ranks that share memory", Comm, minimal_sharing_communicator<true>,
                   minimal_sharing_communicator<false>) {
  run_on<Comm, float>(minimal_schedule(1));
  run_on<Comm, float>(schedules::automatic{});
  run_on<Comm, float>(schedules::shared_memory{});
}

}  // namespace test_of_core_concepts_minimal
