// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <adasum/communicators/threads.hpp>
#include <adasum/detail/engine/shard_exchange.hpp>
#include <adasum/exec/serial.hpp>

#include "support/ranks.hpp"
#include "support/shards.hpp"

namespace test_of_detail_engine_shard_exchange {

using namespace adasum::test;

TEST_CASE("ranks learn who has what, and how long the segments of whole gradients are") {
  for (const auto how : {cutting::by::flat, cutting::by::segments, cutting::by::last})
    for (const std::size_t shards : {1u, 2u, 3u, 7u}) {
      const cutting cut(how, {40, 0, 201, 1, 90}, {1, 4}, shards);
      const auto where = places(3, cut, numbering::random);
      const auto ranks = on_ranks(static_cast<int>(where.size()), [&](const adasum::thread_communicator& comm) {
        const auto& mine = where[static_cast<std::size_t>(comm.rank())];
        const auto segs = cut.segments_of(static_cast<std::size_t>(mine.index));
        const adasum::serial_space exec;
        const auto known =
            adasum::detail::exchange_shards(adasum::detail::ref_to_communicator(exec, comm), mine, segs, "call", [] {});
        return std::pair(known.grid.rank_at({mine.replica, mine.index}), known.whole);
      });
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        REQUIRE_MESSAGE(ranks[r].value, "rank ", r, " ", ranks[r].description());
        const auto& [place, whole] = *ranks[r].value;
        CHECK(place == static_cast<int>(r));
        CHECK(whole.replicas == 3);
        CHECK(whole.lengths == std::vector<std::size_t>{40, 0, 201, 1, 90});
        CHECK(whole.measured_elsewhere == (where[r].index == 0 ? std::vector<std::size_t>{} : cut.replicated()));
        for (std::size_t q = 0; q < where.size(); ++q) CHECK(whole.of_rank(static_cast<int>(q)) == where[q].replica);
      }
    }
}

}  // namespace test_of_detail_engine_shard_exchange
