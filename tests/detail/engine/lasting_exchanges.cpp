// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/detail/engine/lasting_exchanges.hpp>
#include <adasum/exec/serial.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "support/ranks.hpp"

namespace test_of_detail_engine_lasting_exchanges {

using namespace adasum::test;

namespace {

struct block {
  std::uint64_t is_there = 0;
  int rank = 0;
};
const adasum::serial_space exec;

}  // namespace

TEST_CASE("blocks are gathered from all ranks, or every rank knows that one has failed") {
  for (const int size : {1, 2, 3, 5})
    for (const int failing : {-1, 0, size - 1}) {
      CAPTURE(size);
      CAPTURE(failing);
      const auto ranks = on_ranks(size, [&](const adasum::thread_communicator& comm) {
        adasum::detail::lasting_exchanges exchanges(adasum::detail::ref_to_communicator(exec, comm), 1);
        std::vector<block> all(static_cast<std::size_t>(size));
        exchanges.attempt_alone([&] {
          if (comm.rank() == failing) throw std::bad_alloc();
        });
        const bool all_are_there = exchanges.gather(std::optional(block{0, comm.rank()}), all);
        CHECK(all_are_there == (failing < 0));
        for (int rank = 0; all_are_there && rank < size; ++rank)
          CHECK(all[static_cast<std::size_t>(rank)].rank == rank);
        return exchanges.of_first(std::optional(block{0, comm.rank() + 10}), all, "call").rank;
      });
      for (int rank = 0; rank < size; ++rank) {
        const auto& one = ranks[static_cast<std::size_t>(rank)];
        if (failing < 0)
          CHECK(one.value == 10);
        else
          CHECK((rank == failing ? one.threw<std::bad_alloc>() : one.threw<adasum::communication_error>()));
      }
    }
}

}  // namespace test_of_detail_engine_lasting_exchanges
