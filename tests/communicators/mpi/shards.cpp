// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mpi.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>

#include "support/bits.hpp"
#include "support/mpi_world.hpp"
#include "support/parts.hpp"
#include "support/schedules.hpp"
#include "support/shards.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_communicators_mpi_shards {

using namespace adasum::test;

TEST_CASE("shards of gradients, by plans and by calls, have the bits of whole gradients") {
  const adasum::mpi_communicator comm(MPI_COMM_WORLD);
  const adasum::serial_space exec;
  for (std::size_t shards = 1; shards <= static_cast<std::size_t>(comm.size()); ++shards) {
    if (static_cast<std::size_t>(comm.size()) % shards != 0) continue;
    CAPTURE(shards);
    const auto replicas = static_cast<std::size_t>(comm.size()) / shards;
    const cutting cut(cutting::by::flat, {40, 0, 201, 1, 90, 33}, {4}, shards);
    const auto gradients = whole_numbers<double>(replicas, cut.whole().total(), 3);
    for (const auto how : {numbering::replicas_first, numbering::random}) {
      const auto mine = places(replicas, cut, how)[static_cast<std::size_t>(comm.rank())];
      const auto s = static_cast<std::size_t>(mine.index);
      const auto before = cut.shard_of(gradients[static_cast<std::size_t>(mine.replica)], s);
      for_each_message_schedule([&](const auto& order, const std::string& name) {
        CAPTURE(name);
        const auto whole = reduce_on_threads<double>(gradients, cut.whole(), adasum::rules::adasum{}, order);
        const auto expected = cut.shard_of(whole.front().gradient, s);
        auto plan = adasum::plan_allreduce<double>(exec, comm, cut.segments_of(s), order, mine);
        for (int run = 0; run < 2; ++run) {
          auto gradient = before;
          plan.start(gradient);
          while (!plan.test()) std::this_thread::yield();
          const auto& report = plan.wait();
          CHECK(same_bits(gradient, expected));
          CHECK(same_report(report, whole.front().found));
          gradient = before;
          adasum::adasum_allreduce(exec, comm, gradient, cut.segments_of(s), order, mine);
          CHECK(same_bits(gradient, expected));
        }
      });
    }
  }
}

}  // namespace test_of_communicators_mpi_shards
