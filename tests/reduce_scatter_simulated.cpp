// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/testing/simulated_communicator.hpp>

#include "support/arrangements.hpp"
#include "support/bits.hpp"
#include "support/disagreements.hpp"
#include "support/parts.hpp"
#include "support/random_gradients.hpp"
#include "support/thread_reduction.hpp"

namespace test_of_reduce_scatter_simulated {

/// A part of the result for each rank, among simulated ranks: what is written to a buffer that is posted comes at any time, as
/// MPI allows.

using namespace adasum;
using namespace adasum::test;

namespace {

const serial_space exec;
const rules::adasum rule;

/// What each rank finds in its part, after three runs of a plan: what an allreduce by the same schedule gives? The result is
/// dealt out in another way with each seed.
template <class Order>
void check_parts(const std::vector<int>& nodes, const segments& segs, const Order& order) {
  const auto every_parts = some_parts(segs.total(), static_cast<int>(nodes.size()));
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    const auto& given = every_parts[seed % every_parts.size()];
    const auto gradients = random_gradients<float>(nodes.size(), segs.total(), seed);
    const auto whole = reduce_on_threads<float>(gradients, segs, rule, order).front().gradient;
    std::vector<char> right(nodes.size(), 0);
    const auto run = simulate(
        static_cast<int>(nodes.size()), {.seed = seed, .nodes = nodes}, [&](const simulated_communicator& comm) {
          const auto self = static_cast<std::size_t>(comm.rank());
          auto plan = plan_reduce_scatter<float>(exec, comm, segs, given, order, unchecked);
          const auto buffer = plan.buffer();
          bool all = true;
          for (const bool in_buffer : {true, false, true}) {
            auto own = gradients[self];
            if (in_buffer) {
              std::ranges::copy(own, buffer.begin());
              plan();
            } else {
              plan(own);
            }
            all = all && same_elements(in_buffer ? std::span<const float>(buffer) : std::span<const float>(own), whole,
                                       plan.part());
          }
          right[self] = all;
        });
    CHECK(run.deadlock.empty());
    CHECK(run.damage.empty());
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      CAPTURE(rank);
      CHECK_FALSE(run.thrown[rank]);
      CHECK(right[rank]);
    }
  }
}

}  // namespace

TEST_CASE("simulated ranks of several nodes: nobody's elements are given to messages while others read them") {
  const segments segs{50, 0, 100};
  for (const auto& nodes : {nodes_of({5, 4}), nodes_of({3, 1}), nodes_of({10, 9})}) {
    CAPTURE(nodes.size());
    check_parts(nodes, segs, schedules::hierarchical{nodes, rule, schedules::recursive_doubling{}});
  }
}

TEST_CASE("simulated ranks that all share memory: one stage, and levels") {
  for (const auto& segs : {segments{50, 0, 100}, segments{2'000, 0, 4'001}})
    for (const int size : {3, 9, 12}) {
      CAPTURE(size);
      check_parts(std::vector<int>(static_cast<std::size_t>(size)), segs, schedules::shared_memory{});
    }
}

}  // namespace test_of_reduce_scatter_simulated
