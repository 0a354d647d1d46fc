// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes of MPI: all of them, and the first one, two and three.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include <adasum/comm/any.hpp>
#include <adasum/comm/mpi.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/exec/threads.hpp>

#include "abilities.hpp"
#include "check_findings.hpp"
#include "combinations.hpp"
#include "support/mpi_world.hpp"
#include "trials.hpp"

namespace test_of_works_together_mpi {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("works together: processes of MPI") {
  findings found;
  std::ofstream log(world_rank() == 0 ? "works_together.mpi.log" : "/dev/null");
  for (int size = 1; size <= world_size(); ++size) {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() < size ? 0 : MPI_UNDEFINED, world_rank(), &some);
    if (some == MPI_COMM_NULL) continue;
    {
      const setting where{.name = std::to_string(size) + " processes of MPI"};
      auto all = drawn_among(size, 300);
      if (size == 4) all = other_pairs(size);
      rank_findings mine;
      mine.wrong = try_combinations(any_communicator(mpi_communicator(some)), where, all, mine.found, mine.log);
      check_ranks({mine}, log);
      found.add_counts(mine.found);
    }
    MPI_Comm_free(&some);
  }
  note_abilities<mpi_communicator, serial_space>(found, "mpi_communicator", "serial_space", true);
  note_abilities<mpi_communicator, threads_space>(found, "mpi_communicator", "threads_space", true);
  if (world_rank() == 0) check_findings(found, "mpi");
}

}  // namespace test_of_works_together_mpi
